#!/usr/bin/env python3
"""Lists the messages in C++ sources and checks the form of errors.

  messages.py                  Checks all errors. Exits with 1 if an error has a wrong form.
  messages.py --list [PATH...] Lists errors, violations, log lines and notices of folders or files.
  messages.py --rest [PATH...] Lists the other sentences: help texts, reasons of states, findings.
  messages.py --odd [PATH...]  Lists the errors that do not read "cannot X: Y; Z". Some of them are right.

A row is "FILE:LINE  KIND  TEXT". An expression inside a message is shown as {expression}. Tests are left out.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ["engine", "server", "client", "proto"]
TESTS = re.compile(r"_test\.|fixture|/testing/|/fake_")
LOG_KINDS = {"trace", "debug", "info", "warn", "error", "critical"}

CALL = re.compile(
    r"\b(?:absl::)?(?P<error>[A-Z][A-Za-z]*Error|ErrnoToStatus)\s*\("
    r"|\b(?:violations|violations_)(?:\.|->)(?P<add>Add)\s*\("
    r"|\bspdlog::(?P<log>trace|debug|info|warn|error|critical)\s*\("
    r"|\b(?P<notice>AddNotice|OnNotice|set_message|set_problem|tell|Fail|Warn|Fine|Require|because|NoSpace|Full|StatusOf)\s*\("
    r"|\b(?P<status>absl::Status)\s*\(")
LITERALS = re.compile(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+')
# Words that make a reader guess, such as "told" by whom. One cause has one text: "the daemon is shutting down", "it must be
# from", "the client cancelled the call".
WRONG_WORDS = re.compile(
    r"\b(told|goes on|go on|begins? anew|anew|likewise|who(m)?ever|as many as|so many|must lie|host is not known"
    r"|the daemon (stops|shuts down|is going)|client went away|was broken off)\b")
# `--begin-anew` is an option.
ALLOWED = re.compile(r"--begin-anew|cannot begin anew")
# A sentence's capital letter. A name such as "TLS", "CUDA" or "NVLink" has a second capital letter.
CAPITAL = re.compile(r"[A-Z][a-z]+\b")
# Names that begin a message.
NAMES = ("Landlock", "Philox", "Linux")


def tokens(text):
    """Yields ("string", content) and ("code", text) in order."""
    i, code = 0, ""
    while i < len(text):
        if text.startswith("//", i):
            end = text.find("\n", i)
            i = len(text) if end < 0 else end
            continue
        if text.startswith('R"(', i):
            end = text.index(')"', i)
            yield "code", code
            code = ""
            yield "string", text[i + 3:end]
            i = end + 2
            continue
        if text[i] in "\"'":
            end = i + 1
            while text[end] != text[i]:
                end += 2 if text[end] == "\\" else 1
            if text[i] == "'":
                code += text[i:end + 1]
            else:
                yield "code", code
                code = ""
                yield "string", text[i + 1:end].replace('\\"', '"')
            i = end + 1
            continue
        code += text[i]
        i += 1
    yield "code", code


def arguments_of(text, start):
    """Returns the text between the parenthesis at `start` and its match."""
    depth, i = 0, start
    while i < len(text):
        if text.startswith("//", i):
            i = text.find("\n", i)
            continue
        if text.startswith('R"(', i):
            i = text.index(')"', i) + 2
            continue
        if text[i] == '"' or re.match(r"'(?:\\.|[^'\\\n])'", text[i:i + 4]):
            end = i + 1
            while text[end] != text[i]:
                end += 2 if text[end] == "\\" else 1
            i = end + 1
            continue
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[start + 1:i]
        i += 1
    return text[start + 1:]


def shown(arguments):
    out = ""
    for kind, value in tokens(arguments):
        if kind == "string":
            out += value
            continue
        value = re.sub(r"\s+", " ", value).strip(" ,()")
        value = re.sub(r"\b(?:absl::|std::)?(?:StrCat|StrFormat|StrJoin|string_view|CHexEscape|string|move|WithReason)\(", "", value)
        value = value.strip(" ,()")
        if value:
            out += "{" + (value if len(value) <= 40 else value[:37] + "...") + "}"
    return out.strip()


def messages(path):
    """Yields (line, kind, text) for each call that takes a message."""
    text = open(path, encoding="utf-8").read()
    end = -1
    for match in CALL.finditer(text):
        line_start = text.rfind("\n", 0, match.start()) + 1
        if text[line_start:match.start()].lstrip().startswith("//"):
            continue
        arguments = arguments_of(text, match.end() - 1)
        # Part of a message that is already listed.
        if match.start() < end and not match.group("error") and not match.group("log"):
            continue
        message = shown(arguments)
        if '"' not in arguments or not re.search(r"[a-z]{2,} [a-z]{2,}", message):
            continue
        end = max(end, match.end() + len(arguments))
        kind = match.group("error") or match.group("add") or match.group("log") or match.group("notice") or "Status"
        yield text.count("\n", 0, match.start()) + 1, kind, message


def rest(path):
    """Yields the sentences of four words or more that no listed call holds."""
    text = open(path, encoding="utf-8").read()
    spans = [(m.end(), m.end() + len(arguments_of(text, m.end() - 1))) for m in CALL.finditer(text)]
    without_comments = re.sub(r"//[^\n]*|#include[^\n]*", lambda m: " " * len(m.group()), text)
    for match in LITERALS.finditer(without_comments):
        if any(begin <= match.start() < end for begin, end in spans):
            continue
        message = "".join(value for kind, value in tokens(match.group()) if kind == "string")
        if len(re.findall(r"[A-Za-z]{2,}", message)) < 4 or re.match(r"(SELECT|INSERT|DELETE|UPDATE|PRAGMA|CREATE) ", message):
            continue
        yield text.count("\n", 0, match.start()) + 1, "text", message


def is_error(kind):
    return kind.endswith("Error") or kind in ("ErrnoToStatus", "Status")


def is_odd(kind, text):
    if kind in LOG_KINDS:
        return kind in ("warn", "error", "critical") and not text.startswith("cannot ")
    if not is_error(kind):
        return False
    has_mend = "; " in text or kind == "ErrnoToStatus"
    return not (text.startswith("cannot ") and ": " in text and has_mend)


def fault_of(kind, text):
    """Returns the fault of an error's form, or None."""
    if is_error(kind) and CAPITAL.match(text) and not text.startswith(NAMES):
        return "begins with a capital letter"
    if is_error(kind) and text.endswith(".") and not text.endswith("..."):
        return "ends in a full stop"
    # Expressions are no words of a message.
    word = WRONG_WORDS.search(ALLOWED.sub("", re.sub(r"\{[^{}]*\}", "", text)))
    return f'has "{word.group()}"' if word else None


def files_of(paths):
    for path in paths:
        found = [path] if os.path.isfile(path) else [os.path.join(d, f) for d, _, fs in os.walk(path) for f in fs]
        yield from (f for f in sorted(found) if f.endswith((".cc", ".h")) and not TESTS.search(f))


def main():
    options = [a for a in sys.argv[1:] if a.startswith("--")]
    paths = [os.path.abspath(a) for a in sys.argv[1:] if not a.startswith("--")]
    os.chdir(ROOT)
    paths = [os.path.relpath(p, ROOT) for p in paths] or FOLDERS
    take = rest if "--rest" in options else messages
    rows = [(path, *row) for path in files_of(paths) for row in take(path)]
    if options:
        for path, line, kind, text in rows:
            if "--odd" not in options or is_odd(kind, text):
                print(f"{path}:{line}  {kind}  {text}")
        return
    errors = sum(1 for _, _, kind, _ in rows if is_error(kind))
    faults = 0
    for path, line, kind, text in rows:
        fault = fault_of(kind, text)
        if fault:
            faults += 1
            print(f"{path}:{line}: the message {fault}: {text}")
    # A change of this script or of the sources must not make the check empty.
    if errors < 500:
        print(f"found only {errors} errors; the sources have more")
        faults += 1
    print(f"{len(rows)} messages, {errors} of them errors; {faults} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
