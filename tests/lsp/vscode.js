// The extension of VS Code with a stand-in for its API: opens a program, asks every provider, and prints the answers.
"use strict";

const Module = require("module");
const [folder, command, ...args] = process.argv.slice(2, -1);
const text = require("fs").readFileSync(process.argv[process.argv.length - 1], "utf8");

const made = (...names) => Object.fromEntries(names.map((name) => [name, class { constructor(...a) { this.of = a; } }]));
const providers = {};
const commands = {};
const published = [];
const errors = [];
let arrived = () => {};
const uri = { toString: () => "file:///k.pto" };
const lines = () => text.split("\n");
const document = { uri, languageId: "pto", version: 1, getText: () => text };
const event = () => ({ dispose() {} });
const vscode = {
  ...made("Position", "Range", "Location", "MarkdownString", "WorkspaceEditPart", "Diagnostic", "DocumentSymbol", "Hover",
    "CompletionItem", "SnippetString", "SignatureHelp", "SignatureInformation", "ParameterInformation", "CodeAction",
    "InlayHint", "DocumentHighlight", "SemanticTokens", "SemanticTokensLegend", "ProcessExecution", "Task",
    "DebugAdapterExecutable", "DiagnosticRelatedInformation"),
  WorkspaceEdit: class { constructor() { this.edits = []; } replace(...e) { this.edits.push(e); } },
  TextEdit: { replace: (r, t) => [r, t] },
  Uri: { parse: (s) => s },
  CodeActionKind: { QuickFix: "quickfix" },
  TaskScope: { Workspace: 2 },
  window: {
    showErrorMessage: (m) => errors.push(m),
    activeTextEditor: { document: { uri: { fsPath: process.argv[process.argv.length - 1] } } },
  },
  workspace: {
    getConfiguration: () => ({ get: (name) => (name === "command" ? command : args) }),
    textDocuments: [document], onDidOpenTextDocument: event, onDidChangeTextDocument: event, onDidCloseTextDocument: event,
  },
  tasks: { registerTaskProvider: (_, p) => ((providers.tasks = p), event()) },
  debug: { registerDebugAdapterDescriptorFactory: (_, p) => ((providers.debug = p), event()) },
  commands: {
    registerCommand: (name, does) => ((commands[name] = does), event()),
    executeCommand: async (...shown) => shown,
  },
  languages: new Proxy({}, {
    get: (_, name) => name === "createDiagnosticCollection"
      ? () => ({ set: (_, found) => (published.push(found), arrived()), dispose() {} })
      : (_, provider, ...more) => ((providers[name] = provider), (provider.legend = more), event()),
  }),
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));

function find(part) {
  const line = lines().findIndex((l) => l.includes(part));
  return { line, character: lines()[line].indexOf(part) + 1 };
}

(async () => {
  const extension = require(folder + "/extension.js");
  const first = new Promise((resolve) => (arrived = resolve));
  await extension.activate({ subscriptions: [] });
  await first;
  const p = providers;
  const all = { start: { line: 0, character: 0 }, end: { line: lines().length, character: 0 } };
  const name = find("%b = ");
  const out = {
    diagnostics: published[0],
    hover: await p.registerHoverProvider.provideHover(document, find("tadd")),
    completion: (await p.registerCompletionItemProvider.provideCompletionItems(document, find("tadd"))).length,
    signature: await p.registerSignatureHelpProvider.provideSignatureHelp(document, find(", %a :")),
    definition: await p.registerDefinitionProvider.provideDefinition(document, name),
    references: await p.registerReferenceProvider.provideReferences(document, name, { includeDeclaration: true }),
    highlights: await p.registerDocumentHighlightProvider.provideDocumentHighlights(document, name),
    rename: await p.registerRenameProvider.provideRenameEdits(document, name, "sum"),
    refused: await p.registerRenameProvider.provideRenameEdits(document, name, "%a").catch((e) => e.message),
    symbols: await p.registerDocumentSymbolProvider.provideDocumentSymbols(document),
    format: await p.registerDocumentFormattingEditProvider.provideDocumentFormattingEdits(document, { tabSize: 2, insertSpaces: true }),
    tokens: (await p.registerDocumentSemanticTokensProvider.provideDocumentSemanticTokens(document)).of[0].length,
    hints: await p.registerInlayHintsProvider.provideInlayHints(document, all),
    actions: await p.registerCodeActionsProvider.provideCodeActions(document, all),
    tasks: p.tasks.provideTasks().map((t) => t.of[2]),
    explored: await commands["pto.explore"](),
    debug: p.debug.createDebugAdapterDescriptor().of,
  };
  await extension.deactivate();
  process.stdout.write(JSON.stringify({ ...out, errors }));
})().catch((e) => { console.error(e); process.exit(1); });
