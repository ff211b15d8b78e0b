// yaml-language-server as editors run it: a process that is asked in messages of the Language Server Protocol.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(path.join(process.env.PACKAGES, 'x.js'));
const { createMessageConnection, StreamMessageReader, StreamMessageWriter } = require('vscode-jsonrpc/node');

// The most that the server takes for one file, in milliseconds.
const PATIENCE = 20_000;

export class Editor {
  #connection;
  #process;
  #opened = 0;
  #waiting = new Map();

  static async start() {
    const editor = new Editor();
    const program = path.join(process.env.PACKAGES, 'yaml-language-server/bin/yaml-language-server');
    editor.#process = spawn(process.execPath, [program, '--stdio'], { stdio: ['pipe', 'pipe', 'inherit'] });
    const connection = createMessageConnection(
      new StreamMessageReader(editor.#process.stdout), new StreamMessageWriter(editor.#process.stdin));
    connection.onRequest('workspace/configuration', ({ items }) =>
      items.map(({ section }) => (section === 'yaml'
        ? { schemaStore: { enable: false }, kubernetesCRDStore: { enable: false }, validate: true, hover: true, completion: true }
        : null)));
    connection.onRequest('client/registerCapability', () => null);
    connection.onNotification('textDocument/publishDiagnostics', ({ uri, diagnostics }) =>
      editor.#waiting.get(uri)?.(diagnostics));
    connection.listen();
    editor.#connection = connection;
    await connection.sendRequest('initialize', {
      processId: process.pid,
      rootUri: null,
      capabilities: {
        workspace: { configuration: true },
        textDocument: { completion: { completionItem: { documentationFormat: ['markdown'] } }, hover: { contentFormat: ['markdown'] } },
      },
    });
    await connection.sendNotification('initialized', {});
    return editor;
  }

  // Opens a text. Returns its name for further questions.
  async open(text, uri = this.#newName()) {
    await this.#connection.sendNotification('textDocument/didOpen', { textDocument: { uri, languageId: 'yaml', version: 1, text } });
    return uri;
  }

  // The places of a text that the server marks.
  async check(text) {
    const uri = this.#newName();
    let timer;
    const marks = new Promise((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`the language server does not check ${uri}`)), PATIENCE);
      this.#waiting.set(uri, resolve);
    });
    await this.open(text, uri);
    const diagnostics = await marks;
    clearTimeout(timer);
    this.#waiting.delete(uri);
    await this.close(uri);
    return diagnostics;
  }

  #newName() {
    return `file:///nowhere/job-${++this.#opened}.yaml`;
  }

  close(uri) {
    return this.#connection.sendNotification('textDocument/didClose', { textDocument: { uri } });
  }

  // The text that is shown about the word at a place; both numbers count from 0.
  async hover(uri, line, character) {
    const hover = await this.#connection.sendRequest('textDocument/hover', { textDocument: { uri }, position: { line, character } });
    const contents = hover?.contents ?? '';
    return typeof contents === 'string' ? contents : contents.value;
  }

  async complete(uri, line, character) {
    const list = await this.#connection.sendRequest('textDocument/completion', { textDocument: { uri }, position: { line, character } });
    return list?.items ?? [];
  }

  async stop() {
    await this.#connection.sendRequest('shutdown');
    await this.#connection.sendNotification('exit');
    this.#connection.dispose();
    this.#process.kill();
  }
}
