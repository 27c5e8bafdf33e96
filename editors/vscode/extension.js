// PTO in VS Code: answers of `pto lsp` as providers, the debugger `pto debug --dap`, tasks for pto run and check.
"use strict";

const vscode = require("vscode");
const { spawn } = require("child_process");
const { Connection } = require("./rpc.js");

const LANGUAGE = "pto";
// In Python files the server shows problems, pages and shapes; other features are those of a server for Python.
const BOTH = [LANGUAGE, "python"];
let server = null;
let diagnostics = null;
let registered = [];

const settings = () => vscode.workspace.getConfiguration("pto");
const command = () => settings().get("command") || "pto";

// -- values of the protocol and of VS Code ------------------------------------------------------------------

const place = (p) => new vscode.Position(p.line, p.character);
const range = (r) => new vscode.Range(place(r.start), place(r.end));
const location = (l) => l && new vscode.Location(vscode.Uri.parse(l.uri), range(l.range));
const markdown = (text) => new vscode.MarkdownString(text);
const file = (document) => ({ textDocument: { uri: document.uri.toString() } });
const at = (document, position) => ({
  ...file(document),
  position: { line: position.line, character: position.character },
});
const plain = (r) => ({
  start: { line: r.start.line, character: r.start.character },
  end: { line: r.end.line, character: r.end.character },
});

function changes(edit) {
  const out = new vscode.WorkspaceEdit();
  for (const [uri, edits] of Object.entries(edit.changes || {}))
    for (const e of edits) out.replace(vscode.Uri.parse(uri), range(e.range), e.newText);
  return out;
}

function symbol(s) {
  const out = new vscode.DocumentSymbol(s.name, s.detail || "", s.kind - 1, range(s.range), range(s.selectionRange));
  out.children = (s.children || []).map(symbol);
  return out;
}

function published({ uri, diagnostics: found }) {
  const shown = found.map((d) => {
    const out = new vscode.Diagnostic(range(d.range), d.message, d.severity - 1);
    out.code = d.code;
    out.source = d.source;
    out.relatedInformation = (d.relatedInformation || []).map(
      (r) => new vscode.DiagnosticRelatedInformation(location(r.location), r.message)
    );
    return out;
  });
  diagnostics.set(vscode.Uri.parse(uri), shown);
}

// -- providers ---------------------------------------------------------------------------------------------

function providers(able) {
  const l = vscode.languages;
  const ask = (name, params) => server.ask(`textDocument/${name}`, params);
  const completions = {
    async provideCompletionItems(document, position) {
      const found = await ask("completion", at(document, position));
      return found.items.map((i) => {
        const out = new vscode.CompletionItem(i.label, i.kind - 1);
        out.detail = i.detail;
        out.sortText = i.sortText;
        out.filterText = i.filterText;
        out.range = range(i.textEdit.range);
        out.insertText =
          i.insertTextFormat === 2 ? new vscode.SnippetString(i.textEdit.newText) : i.textEdit.newText;
        out.given = i;
        return out;
      });
    },
    async resolveCompletionItem(item) {
      const full = await server.ask("completionItem/resolve", item.given);
      if (full.documentation) item.documentation = markdown(full.documentation.value);
      return item;
    },
  };
  const signatures = {
    async provideSignatureHelp(document, position) {
      const found = await ask("signatureHelp", at(document, position));
      if (!found) return null;
      const out = new vscode.SignatureHelp();
      out.signatures = found.signatures.map((s) => {
        const signature = new vscode.SignatureInformation(s.label, s.documentation);
        signature.parameters = s.parameters.map((p) => new vscode.ParameterInformation(p.label));
        return signature;
      });
      out.activeSignature = 0;
      out.activeParameter = found.activeParameter;
      return out;
    },
  };
  const renames = {
    async prepareRename(document, position) {
      const found = await ask("prepareRename", at(document, position));
      if (!found) throw new Error("expected a name that the text defines");
      return range(found);
    },
    async provideRenameEdits(document, position, newName) {
      return changes(await ask("rename", { ...at(document, position), newName }));
    },
  };
  const actions = {
    async provideCodeActions(document, r) {
      const found = await ask("codeAction", { ...file(document), range: plain(r), context: { diagnostics: [] } });
      return found.map((a) => {
        const out = new vscode.CodeAction(a.title, vscode.CodeActionKind.QuickFix);
        out.edit = changes(a.edit);
        return out;
      });
    },
  };
  const hints = {
    async provideInlayHints(document, r) {
      const found = await ask("inlayHint", { ...file(document), range: plain(r) });
      return found.map((h) => {
        const out = new vscode.InlayHint(place(h.position), h.label);
        out.tooltip = h.tooltip;
        out.paddingLeft = h.paddingLeft;
        out.paddingRight = h.paddingRight;
        return out;
      });
    },
  };
  const { tokenTypes, tokenModifiers } = able.semanticTokensProvider.legend;
  return [
    l.registerHoverProvider(BOTH, {
      async provideHover(document, position) {
        const found = await ask("hover", at(document, position));
        return found && new vscode.Hover(markdown(found.contents.value), range(found.range));
      },
    }),
    l.registerCompletionItemProvider(LANGUAGE, completions, ...able.completionProvider.triggerCharacters),
    l.registerSignatureHelpProvider(LANGUAGE, signatures, ...able.signatureHelpProvider.triggerCharacters),
    l.registerDefinitionProvider(LANGUAGE, {
      provideDefinition: async (document, position) => location(await ask("definition", at(document, position))),
    }),
    l.registerReferenceProvider(LANGUAGE, {
      async provideReferences(document, position, context) {
        return (await ask("references", { ...at(document, position), context })).map(location);
      },
    }),
    l.registerDocumentHighlightProvider(LANGUAGE, {
      async provideDocumentHighlights(document, position) {
        const found = await ask("documentHighlight", at(document, position));
        return found.map((h) => new vscode.DocumentHighlight(range(h.range), h.kind - 1));
      },
    }),
    l.registerRenameProvider(LANGUAGE, renames),
    l.registerDocumentSymbolProvider(LANGUAGE, {
      provideDocumentSymbols: async (document) => (await ask("documentSymbol", file(document))).map(symbol),
    }),
    l.registerDocumentFormattingEditProvider(LANGUAGE, {
      async provideDocumentFormattingEdits(document, options) {
        const found = (await ask("formatting", { ...file(document), options })) || [];
        return found.map((e) => vscode.TextEdit.replace(range(e.range), e.newText));
      },
    }),
    l.registerDocumentSemanticTokensProvider(
      LANGUAGE,
      {
        async provideDocumentSemanticTokens(document) {
          return new vscode.SemanticTokens(new Uint32Array((await ask("semanticTokens/full", file(document))).data));
        },
      },
      new vscode.SemanticTokensLegend(tokenTypes, tokenModifiers)
    ),
    l.registerInlayHintsProvider(BOTH, hints),
    l.registerCodeActionsProvider(LANGUAGE, actions),
  ];
}

// -- the server --------------------------------------------------------------------------------------------

async function start() {
  const made = new Connection(
    command(),
    ["lsp", ...(settings().get("arguments") || [])],
    (method, params) => method === "textDocument/publishDiagnostics" && published(params),
    (why) => vscode.window.showErrorMessage(`PTO: the language server has ended: ${why.trim()}`)
  );
  server = made;
  const capabilities = { textDocument: { completion: { completionItem: { snippetSupport: true } } } };
  const { capabilities: able } = await made.ask("initialize", { processId: process.pid, rootUri: null, capabilities });
  made.notify("initialized", {});
  registered = providers(able);
  vscode.workspace.textDocuments.forEach(opened);
}

async function stop() {
  registered.forEach((r) => r.dispose());
  registered = [];
  const old = server;
  server = null;
  if (old) await old.close();
}

function tell(method, document, more) {
  if (server && BOTH.includes(document.languageId))
    server.notify(`textDocument/${method}`, { textDocument: { uri: document.uri.toString(), ...more } });
}

function opened(document) {
  tell("didOpen", document, { languageId: document.languageId, version: document.version, text: document.getText() });
}

function changed({ document }) {
  if (server && BOTH.includes(document.languageId))
    server.notify("textDocument/didChange", {
      textDocument: { uri: document.uri.toString(), version: document.version },
      contentChanges: [{ text: document.getText() }],
    });
}

// -- the explorer: timeline, memory, stages, in a panel -----------------------------------------------------

const explorers = new Set();

// Serves the page of the open program, and shows it in a panel; resolves when it is shown.
function explore() {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return Promise.resolve();
  const child = spawn(command(), ["explore", editor.document.uri.fsPath], { stdio: ["ignore", "ignore", "pipe"] });
  explorers.add(child);
  let said = "";
  return new Promise((resolve) => {
    const over = (why) => {
      if (explorers.delete(child)) vscode.window.showErrorMessage(`PTO: cannot show the program: ${why}`);
      resolve();
    };
    child.on("error", (error) => over(error.message));
    child.on("exit", () => over(said.trim()));
    child.stderr.on("data", (data) => {
      said += data;
      const url = /^http:\/\/127\.0\.0\.1:\S+/m.exec(said);
      if (url && said.endsWith("\n")) resolve(vscode.commands.executeCommand("simpleBrowser.show", url[0]));
    });
  });
}

function stopAll() {
  for (const child of explorers) explorers.delete(child), child.kill(), child.stderr.destroy();
  return stop();
}

// -- tasks -------------------------------------------------------------------------------------------------

function task(definition) {
  const words = [definition.verb, ...(definition.args || [])];
  const execution = new vscode.ProcessExecution(command(), words);
  return new vscode.Task(definition, vscode.TaskScope.Workspace, words.join(" "), "pto", execution, "$pto");
}

const tasks = {
  provideTasks: () => [
    task({ type: "pto", verb: "check", args: ["${file}"] }),
    task({ type: "pto", verb: "run", args: ["${file}", "--sanitize", "all"] }),
  ],
  resolveTask: (given) => task(given.definition),
};

// ----------------------------------------------------------------------------------------------------------

function activate(context) {
  diagnostics = vscode.languages.createDiagnosticCollection("pto");
  const w = vscode.workspace;
  context.subscriptions.push(
    diagnostics,
    w.onDidOpenTextDocument(opened),
    w.onDidChangeTextDocument(changed),
    w.onDidCloseTextDocument((document) => tell("didClose", document, {})),
    vscode.tasks.registerTaskProvider("pto", tasks),
    vscode.debug.registerDebugAdapterDescriptorFactory("pto", {
      createDebugAdapterDescriptor: () => new vscode.DebugAdapterExecutable(command(), ["debug", "--dap"]),
    }),
    vscode.commands.registerCommand("pto.restart", () => stop().then(start)),
    vscode.commands.registerCommand("pto.explore", explore)
  );
  return start().catch(() => {}); // the end of the server is reported
}

module.exports = { activate, deactivate: stopAll };
