#!/usr/bin/env python3
"""Checks that every name in the documents exists, and counts hard sentences.

  tests/lint/documents.py               all documents of the repository
  tests/lint/documents.py FILE...       some of them
  tests/lint/documents.py --sentences   also lists the hard sentences

Names are commands and their options, paths and links, Bazel targets, test cases, fields of jobs, options of tandemd,
constants, metrics and classes. The names come from the sources, so no program need be built. At most 3 % of the sentences
may be hard. tests/integration/documents.sh runs the examples.
"""
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MOST_HARD = 0.03
MOST_LINES = {"README.md": 100, "ARCHITECTURE.md": 150}

# Programs of the system that pages may call. Their options are not checked.
SYSTEM = set("""
apt bash bazel cat chmod chown cp curl docker env export grpcurl hostname install jq mkdir nsys nvidia-smi openssl pip prometheus python3
readlink sha256sum source srun ssh sudo systemctl tar tensorboard touch useradd
for do done wait true
""".split())
# Files that exist only at run time, or in a reader's own folder.
RUN_TIME = re.compile(r"""(job|throws|shirts|tandemd|my|FILE)\.(ya?ml|json)$|^job\.json$|parsed\.json$|runs\.tsv$|table\.md$|
    launch(-N)?\.textproto$|metrics\.json$|train_images|^audit\.log|^crash-""", re.X)
# Names of HTTP/2 that no source has.
FOREIGN_NAMES = {"ENHANCE_YOUR_CALM"}
# The first cell of each row of this page has a name of another system.
FOREIGN_PAGE = "client/MIGRATION.md"
# Options of other programs that prose names alone.
FOREIGN_FLAGS = {"--config", "--define", "--network", "--logdir", "--test_filter", "--test_output", "--help", "--version"}
FIELD_ROOTS = ("JobSpec", "DatasetSpec", "Sweep", "Training", "Replicas", "Model", "Layer")

GROUPS = ("devices", "datasets", "tokens", "backup")
HEADING = re.compile(r"^#{1,6} (.*)$", re.M)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9_-]*")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


class Sources:
    """The names that exist."""

    def __init__(self):
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                                capture_output=True, text=True).stdout.split("\n")
        self.files = [path for path in listed if path and os.path.isfile(os.path.join(ROOT, path))]
        self.folders = {"/".join(path.split("/")[:i]) for path in self.files for i in range(1, path.count("/") + 1)}
        binary = re.compile(r"\.(safetensors|gz|xz|png|jpg|binpb|npz|npy)$|^tests/fuzz/finds/")
        self.text = {path: read(path) for path in self.files
                     if not binary.search(path) and not path.endswith(".md") and path != "tests/lint/documents.py"}
        self.words = set()
        for text in self.text.values():
            self.words.update(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", text))
        self.commands = {path: text for path, text in self.text.items() if re.match(r"client/cli/commands/\w+\.cc$", path)}
        self.messages, self.enum_names = self.read_protos()
        self.field_names = {name for fields in self.messages.values() for name in fields}
        daemon = self.text["server/daemon/options.cc"] + self.text["server/daemon/cluster_options.cc"]
        self.daemon_options = set(re.findall(r'"--([a-z][a-z0-9-]*)"', daemon)) | {"help", "version"}
        # Neighbouring literals of C++ are one text.
        self.messages_text = "\n".join(re.sub(r'"\s*\n\s*"', "", text) for path, text in self.text.items() if path.endswith((".cc", ".h")))
        self.flags = {match for text in self.text.values() for match in FLAG.findall(text)} | FOREIGN_FLAGS

    def read_protos(self):
        """Fields of each message with their types, and the short names of enum values."""
        messages, enums = {}, set()
        for path, text in self.text.items():
            if not re.match(r"proto/tandem/v1/\w+\.proto$", path):
                continue
            text = re.sub(r"//.*", "", text)
            stack = []
            for token in re.finditer(r"(message|enum|oneof|service|rpc)\s+(\w+)[^{};]*\{|\{|\}|"
                                     r"(?:repeated |optional )?([\w.]+|map<[^>]*>)\s+(\w+)\s*=\s*\d+|(\w+)\s*=\s*\d+", text):
                kind, name, field_type, field, value = token.groups()
                if kind:
                    stack.append((kind, name))
                    if kind == "message":
                        messages.setdefault(name, {})
                elif token.group() == "{":
                    stack.append(("", ""))
                elif token.group() == "}":
                    if stack:
                        stack.pop()
                elif field:
                    owners = [name for kind, name in stack if kind == "message"]
                    if owners:
                        messages[owners[-1]][field] = field_type.split(".")[-1]
                elif value and stack and stack[-1][0] == "enum":
                    enums.add(value)
        return messages, enums

    def command_flags(self, words):
        """The options of `tandem WORDS...`, or None if there is no such command."""
        if not words:
            return self.flags_of("client/cli/app.cc")
        name = words[0]
        own = [path for path, text in self.commands.items()
               if f'"{name}"' in text and (os.path.basename(path).startswith(name) or "cancel_pause_resume" in path)]
        if not own:
            return None
        flags = self.flags_of("client/cli/app.cc") | {"--help"}
        for path in self.commands:
            if os.path.basename(path).startswith(name) or path in own:
                flags |= self.flags_of(path)
        if name == "datasets":
            flags |= self.flags_of("client/cli/dataset_options.cc")
        if any("AddSampleOptions(" in self.commands[path] for path in own):
            flags |= self.flags_of("client/cli/commands/sample_options.h")
        if any("AddChanges(" in self.commands[path] for path in own):
            flags |= self.flags_of("client/cli/job_source.cc")
        if any("AddOn(" in self.commands[path] for path in own):
            flags |= self.flags_of("client/cli/job_source.cc") & {"on", "--on"}
        if name in GROUPS and len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]):
            if not any(f'"{words[1]}' in text or f',{words[1]}' in text for path, text in self.commands.items()
                       if os.path.basename(path).startswith(name)):
                return None
        return flags

    def flags_of(self, path):
        return set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*|-[a-zA-Z])(?=[,\"\s)|=\]])", self.text[path]))

    def has_path(self, path, folder):
        path = path.rstrip("/")
        for base in ([path] if not folder else [os.path.normpath(os.path.join(folder, path)), path]):
            if base in self.folders or base in self.text or os.path.exists(os.path.join(ROOT, base)):
                return True
            if "*" in base and any(re.fullmatch(base.replace(".", r"\.").replace("*", "[^/]*"), file) for file in self.files):
                return True
        # A short name, such as `kernel.cc` or `driver/convolution_check.h`.
        return any(file.endswith("/" + path) for file in self.files) or any(each.endswith("/" + path) for each in self.folders)

    def has_target(self, package, name):
        build = self.text.get(f"{package}/BUILD" if package else "BUILD")
        if build is None:
            return False
        # gpu_test makes a second target: emulated_<name>.
        return name == "all" or f'"{name}"' in build or \
            f'gpu_test(\n    name = "{name.removeprefix("emulated_")}"' in build


def anchor(heading):
    """The anchor that a web page gives a heading."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def line_of(text, position):
    return text.count("\n", 0, position) + 1


class Page:
    """A document, and the faults of its names."""

    def __init__(self, path, text, sources):
        self.path, self.text, self.sources = path, text, sources
        self.folder = os.path.dirname(path)
        self.faults = []

    def fault(self, position, message):
        self.faults.append(f"{self.path}:{line_of(self.text, position)}: {message}")

    def check(self):
        self.check_links()
        for block in FENCE.finditer(self.text):
            language, body = block.groups()
            start = block.start(2)
            if language in ("sh", "bash"):
                self.check_shell(body, start)
            elif language == "text":
                for line in re.finditer(r"^\$ (.*)$", body, re.M):
                    self.check_shell(line.group(1) + "\n", start + line.start(1))
            elif language == "yaml":
                self.check_yaml(body, start)
            self.check_words(body, start, language in ("sh", "bash", "python"))
        prose = FENCE.sub(lambda block: re.sub(r"[^\n]", " ", block.group()), self.text)
        if self.path == FOREIGN_PAGE:
            prose = re.sub(r"^\|[^|\n]*\|", lambda cell: " " * len(cell.group()), prose, flags=re.M)
        for span in re.finditer(r"`([^`\n]+)`", prose):
            self.check_span(span.group(1), span.start(1))
        self.check_words(prose, 0, True)
        self.check_cases(prose)
        self.check_messages(prose)
        return self.faults

    def check_links(self):
        for link in re.finditer(r"\]\(([^)\s]+)\)", self.text):
            target = link.group(1)
            if re.match(r"https?://|mailto:", target):
                continue
            path, _, name = target.partition("#")
            full = os.path.normpath(os.path.join(self.folder, path)) if path else self.path
            if not os.path.exists(os.path.join(ROOT, full)):
                self.fault(link.start(), f"the link leads nowhere: {target}")
            elif name and full.endswith(".md"):
                text = self.text if full == self.path else read(full)
                anchors = [anchor(heading) for heading in HEADING.findall(FENCE.sub("", text))]
                if name not in anchors:
                    self.fault(link.start(), f"{full} has no heading #{name}")

    def check_shell(self, body, start):
        body = re.sub(r"\\\n", "  ", body)
        for line in body.split("\n"):
            length = len(line)
            if line.lstrip().startswith("#"):
                line = ""
            for command in re.split(r"\|\||&&|[|;]|<\(|\$\(", line.split("  #")[0].split(" # ")[0]):
                self.check_command(command.strip().strip("&()").strip(), start)
            start += length + 1

    def check_command(self, command, position):
        try:
            words = shlex.split(command, comments=True)
        except ValueError:
            words = command.split()
        while words and (re.match(r"^[A-Za-z_]\w*=", words[0]) or words[0] in ("do", "sudo", "exec", "time")):
            sudo = words[0] == "sudo"
            words = words[1:]
            if sudo and words[:1] == ["-u"]:
                words = words[2:]
        if not words:
            return
        program, arguments = words[0], words[1:]
        if program == "srun" and "tandem-worker" in arguments:
            program, arguments = "tandem-worker", arguments[arguments.index("tandem-worker") + 1:]
        flags = [match.group() for word in arguments for match in [re.match(r"--?[a-zA-Z][a-z0-9_-]*", word)] if match]
        if program == "tandem":
            names = [word for word in self.without_values(arguments) if not word.startswith("-")][:2]
            known = self.sources.command_flags(names)
            if known is None and not names[0].isupper():
                self.fault(position, f"there is no command: tandem {' '.join(names)}")
                return
            self.check_flags("tandem " + (names[0] if names else ""), flags, known or set(), position)
        elif program == "tandemd":
            self.check_flags(program, flags, {"--" + name for name in self.sources.daemon_options}, position)
        elif program == "tandem-worker":
            self.check_flags(program, flags, self.sources.flags_of("server/worker/main.cc"), position)
        elif "/" in program and not program.startswith(("/", "~", "$")):
            path = program.removeprefix("./")
            path = re.sub(r"^examples/", "deploy/examples/", path.removeprefix("tandem/"))   # In an unpacked bundle.
            if not self.sources.has_path(path, self.folder):
                self.fault(position, f"there is no file {program}")
            elif path in self.sources.text:
                text = self.sources.text[path]
                if path.startswith("tests/gpu/"):
                    text += self.sources.text["tests/gpu/checks.py"] + self.sources.text["tests/gpu/gpu_tests.py"]
                for flag in flags:
                    if flag not in text and flag not in ("--help",) and not path.startswith("deploy/bundle"):
                        self.fault(position, f"{program} has no option {flag}")
        elif program == "bazel":
            for word in arguments:
                self.check_label(word, position)
            if "run" in arguments and "--" in arguments:
                sources = "".join(text for path, text in self.sources.text.items() if re.match(r"tests/(bench|golden)/\w+\.cc", path))
                for flag in flags[sum(word.startswith("-") and word != "--" for word in arguments[:arguments.index("--")]):]:
                    if f'"{flag}' not in sources and f'"{flag[2:]}' not in sources:
                        self.fault(position, f"the programs of tests/bench and tests/golden have no option {flag}")
        elif program not in SYSTEM and not re.fullmatch(r"[A-Z_]+|\.\.\.|\W*", program):
            self.fault(position, f"unknown program {program}")
        for word in arguments:
            if re.match(r"(deploy|tests|client|server|engine|proto)/(?!python/dist/)", word) and not self.sources.has_path(word.split("=")[-1], ""):
                self.fault(position, f"there is no file {word}")

    def without_values(self, arguments):
        """The words that are not the value of a global option."""
        takes_value = {"--address", "--token-file", "--tls-ca", "--tls-cert", "--tls-key", "--state-folder", "--timeout", "-o"}
        return [word for i, word in enumerate(arguments) if i == 0 or arguments[i - 1] not in takes_value]

    def check_flags(self, program, flags, known, position):
        for flag in flags:
            if flag not in known and flag != "--help":
                self.fault(position, f"{program} has no option {flag}")

    def check_yaml(self, body, start):
        for key in re.finditer(r"(?:^|[{,\[]|- )\s*([A-Za-z_][\w-]*):(?=\s|$)", body, re.M):
            name = key.group(1)
            if name not in self.sources.field_names and name not in self.sources.daemon_options:
                self.fault(start + key.start(1), f"no job, sweep or configuration has the field {name}")

    def check_label(self, word, position):
        match = re.match(r"^(?://)?((?:engine|server|client|proto|tests|third_party)[\w/.-]*)(?::([\w.-]+))?$", word)
        if not match or not (word.startswith("//") or match.group(2)):
            return
        package, name = match.groups()
        package = package.removesuffix("/...")
        if package not in self.sources.folders:
            self.fault(position, f"there is no package {word}")
        elif name and not self.sources.has_target(package, name):
            self.fault(position, f"there is no target {word}")

    def check_span(self, span, position):
        if re.fullmatch(r"[\w/.-]+:[\w.-]+", span):
            self.check_label(span, position)
            return
        if re.match(r"(tandem|tandemd|tandem-worker|bazel|deploy/\S+|tests/\S+)( |$)", span) and "..." not in span.split()[0]:
            self.check_shell(span + "\n", position)
            return
        if re.match(r"-", span):
            for flag in FLAG.findall(span):
                if flag not in self.sources.flags:
                    self.fault(position, f"nothing has the option {flag}")
            return
        self.check_label(span, position)
        if re.fullmatch(r"[\w.*-]+(/[\w.*-]+)*\.(cc|h|cu|inc|py|sh|md|proto|ya?ml|bzl|json|tsv|js|mjs|service|txt|bash)", span) or \
                re.match(r"(engine|server|client|proto|tests|deploy|third_party)/[\w./*-]*$", span):
            if not RUN_TIME.search(span) and "NAME" not in span and not self.sources.has_path(span, self.folder):
                self.fault(position, f"there is no file {span}")
        elif re.fullmatch(r"[a-z][a-z0-9_]*(\[\d*\])?(\.[a-z0-9_]+(\[\d*\])?)+(=.*)?", span):
            self.check_field(span.split("=")[0], position)
        elif re.match(r"[a-z_0-9]+: ", span) and not span.startswith("authorization"):
            self.check_yaml(span, position)
        else:
            for name in re.findall(r"(?:^|\b)((?:[A-Z][a-z0-9]+){2,})\b", span):
                if name not in self.sources.words:
                    self.fault(position, f"no source has the name {name}")

    def check_field(self, path, position):
        steps = [re.sub(r"\[\d*\]", "", step) for step in path.split(".")]
        messages = self.sources.messages
        roots = [root for root in FIELD_ROOTS if steps[0] in messages[root]]
        if steps[-1] in ("safetensors", "db", "log", "yaml", "json", "lock", "csv", "sh", "py", "pem", "key", "token", "damaged", "removed", "txt", "npy"):
            return
        if not roots:
            return
        for root in roots:
            message = root
            for step in steps:
                message = messages.get(message, {}).get(step)
                if message is None:
                    break
            if message is not None:
                return
        self.fault(position, f"no job has the field {path}")

    def check_words(self, text, start, with_metrics):
        # Constants, reasons and environment variables.
        for word in re.finditer(r"(?<![\w$])[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)+\b", text):
            if word.group() not in self.sources.words | FOREIGN_NAMES and not any(
                    name.endswith("_" + word.group()) for name in self.sources.enum_names):
                self.fault(start + word.start(), f"no source has the name {word.group()}")
        if with_metrics:
            for word in re.finditer(r"\btandem_[a-z_]+\b", text):
                if word.group() not in self.sources.words:
                    self.fault(start + word.start(), f"no source has the metric {word.group()}")

    def check_cases(self, prose):
        """Test cases that stand beside the name of a test."""
        tests = " ".join(text for path, text in self.sources.text.items() if path.endswith("_test.cc"))
        for cell in re.finditer(r"[^|\n]*`[\w/:]*_test`[^|\n]*", prose):
            for case in re.finditer(r"(?<![`\w])((?:[A-Z][a-z0-9]*){3,})(?![`\w])", cell.group()):
                if not re.search(rf"\b{case.group(1)}\b", tests):
                    self.fault(cell.start() + case.start(), f"no test has the case {case.group(1)}")

    def check_messages(self, prose):
        """Messages in the first column of a table of errors: three words in a row must be in a source."""
        in_table = False
        for line in re.finditer(r"^.*$", prose, re.M):
            cell = line.group().strip("|").split("|")[0]
            if not line.group().startswith("|"):
                in_table = False
            elif re.match(r"\| (error|message)", line.group()):
                in_table = True
            elif in_table:
                for span in re.findall(r"`([^`]* [^`]*)`", cell):
                    words = [word for word in span.split() if not re.search(r"[\d'\"]", word)]
                    size = min(3, len(words))
                    runs = [" ".join(words[i:i + size]) for i in range(len(words) - size + 1)]
                    if not any(run in self.sources.messages_text for run in runs if run != "did you mean"):
                        self.fault(line.start(), f"no source has the message {span}")


# Sentences ------------------------------------------------------------------------------------------------------------

SMELLS = [(weight, re.compile(pattern, re.I)) for weight, pattern in (
    (3, r"\b(of|to|by|in|with|from|for|at|on|behind|after|before) (which|whom)\b"),
    (3, r"\bwhat (is|was|are|were|has|had|may|it|they|he|she|others?|no|each|follows|remains|comes|came)\b"),
    (3, r"\b(who|whoever|whatever|whichever) (is|was|has|it|came|comes|may|would|submits|asks|reads|waits)\b"),
    (2, r"\b(anew|likewise|thereof|therein|thereby|so many|as many as|that much)\b"),
    (2, r"\b(is|are|was|were) (told|to be|no more|not to|of no use|of use|there|at hand|gone)\b"),
    (2, r"\b(goes|stands|comes to be|came to be|come to)\b"),
    (2, r"\b(one|ones|those|that) (that|which|who|of|for|with|in|whose)\b"),
    (2, r"\bwhere (there|it|one|that|they|nothing|no|the) (is|are|was|were|has|have|can|cannot|does|do)\b"),
)]


def sentences(text):
    """The sentences of a document, with their lines. Each cell of a table and each item of a list stands by itself."""
    text = FENCE.sub(lambda block: re.sub(r"[^\n]", " ", block.group()), text)
    start, words = 0, []
    for number, line in enumerate(text.split("\n") + [""], 1):
        line = line.strip()
        apart = not line or line.startswith(("|", "#")) or re.match(r"([-*]|\d+\.) ", line)
        if apart and words:
            yield from split(start, " ".join(words))
            words = []
        if line.startswith("|"):
            if not re.match(r"\|[-: |]+$", line):
                for cell in line.strip("|").split("|"):
                    yield from split(number, cell.strip())
        elif line:
            start = start if words else number
            words.append(re.sub(r"^([-*#]+|\d+\.) ", "", line))


def split(number, text):
    for sentence in re.split(r"(?<=[.;:!?])\s+(?=[A-Z`\"(\[*])", text):
        if sentence.strip():
            yield number, sentence.strip()


def is_hard(sentence):
    sentence = re.sub(r"\]\([^)]*\)", "]", sentence)
    count = len(re.findall(r"[A-Za-z']+", re.sub(r"`[^`]*`", "x", sentence)))
    score = 2 + (count - 26) // 6 if count > 26 else 0
    return score + sum(weight * len(pattern.findall(sentence)) for weight, pattern in SMELLS) >= 4


# A page with one fault of each kind. A check that finds nothing in it proves nothing.
FAULTY = """# Faulty
[a](nowhere.md) [b](#no-such-heading) `engine/graph/no_such_op.cc` `//engine/graph:no_such_test` `--no-such-option`
`training.no_such_field` `NoSuchClassAnywhere` NO_SUCH_CONSTANT `tandem_no_such_metric` `tandem frobnicate`
`store_test` NoSuchCaseOfIt
```sh
tandem submit job.yaml --no-such-flag
tandem devices paint
tandemd --no-such-daemon-flag
no-such-program
tests/no_such_script.sh
deploy/test.sh --no-such-script-flag
```
```yaml
no_such_key: 1
```
| message | mend |
| --- | --- |
| `no program says such a thing` | none |
"""
FAULTS = 18


def main():
    arguments = sys.argv[1:]
    list_sentences = "--sentences" in arguments
    paths = [os.path.relpath(os.path.abspath(path), ROOT) for path in arguments if not path.startswith("--")]
    sources = Sources()
    paths = paths or [path for path in sources.files if path.endswith(".md")]
    found = Page("FAULTY.md", FAULTY, sources).check()
    faults, hard, total = [], [], 0
    if len(found) != FAULTS:
        faults.append(f"tests/lint/documents.py finds {len(found)} of the {FAULTS} faults of its own faulty page:\n  " + "\n  ".join(found))
    for path in paths:
        text = read(path)
        faults += Page(path, text, sources).check()
        if text.count("\n") > MOST_LINES.get(path, text.count("\n")):
            faults.append(f"{path}: has {text.count(chr(10))} lines; at most {MOST_LINES[path]} may be")
        for number, sentence in sentences(text):
            total += 1
            if is_hard(sentence):
                hard.append(f"{path}:{number}: {sentence[:200]}")
    for fault in faults:
        print(fault)
    share = len(hard) / max(total, 1)
    if list_sentences or share > MOST_HARD:
        print("\n".join(hard))
    if share > MOST_HARD:
        print(f"too many hard sentences: {len(hard)} of {total}; at most {MOST_HARD:.0%} may be; split them, and name the thing again")
    print(f"documents: {len(paths)} pages, {len(faults)} faults, {len(hard)} of {total} sentences are hard")
    sys.exit(1 if faults or share > MOST_HARD else 0)


if __name__ == "__main__":
    main()
