// Messages of the Language Server Protocol with a process: headers, then JSON.
"use strict";

const { spawn } = require("child_process");

class Connection {
  // `received` gets each notification of the server, `ended` the reason of an end.
  constructor(command, args, received, ended) {
    this.received = received;
    this.waiting = new Map();
    this.last = 0;
    this.data = Buffer.alloc(0);
    this.errors = "";
    this.process = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
    this.process.stdout.on("data", (data) => this.read(data));
    this.process.stderr.on("data", (data) => (this.errors = (this.errors + data).slice(-4000)));
    this.process.stdin.on("error", () => {}); // reported as the end of the process
    const over = (why) => {
      for (const { reject } of this.waiting.values()) reject(new Error(why));
      this.waiting.clear();
      if (!this.closed) ended(why);
      this.closed = true;
    };
    this.process.on("error", (error) => over(error.message));
    this.process.on("exit", (code) => over(`status ${code}\n${this.errors}`));
  }

  read(data) {
    this.data = Buffer.concat([this.data, data]);
    for (;;) {
      const end = this.data.indexOf("\r\n\r\n");
      const size = end < 0 ? null : /content-length: *(\d+)/i.exec(this.data.toString("latin1", 0, end));
      if (!size || this.data.length < end + 4 + Number(size[1])) return;
      const message = JSON.parse(this.data.toString("utf8", end + 4, end + 4 + Number(size[1])));
      this.data = this.data.subarray(end + 4 + Number(size[1]));
      const call = message.method === undefined ? this.waiting.get(message.id) : undefined;
      if (call) {
        this.waiting.delete(message.id);
        message.error ? call.reject(new Error(message.error.message)) : call.resolve(message.result);
      } else if (message.method && message.id !== undefined) {
        this.send({ id: message.id, result: null }); // no request of the server needs an answer
      } else if (message.method) {
        this.received(message.method, message.params);
      }
    }
  }

  send(message) {
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    if (!this.closed) this.process.stdin.write(`Content-Length: ${body.length}\r\n\r\n${body}`);
  }

  notify(method, params) {
    this.send({ method, params });
  }

  ask(method, params) {
    if (this.closed) return Promise.reject(new Error("the language server has ended"));
    const id = ++this.last;
    this.send({ id, method, params });
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  async close() {
    if (this.closed) return;
    this.closed = true;
    const asked = new Promise((resolve, reject) => this.waiting.set(++this.last, { resolve, reject }));
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: this.last, method: "shutdown" }));
    this.process.stdin.write(`Content-Length: ${body.length}\r\n\r\n${body}`);
    await asked.catch(() => {});
    this.process.stdin.end('Content-Length: 33\r\n\r\n{"jsonrpc":"2.0","method":"exit"}');
  }
}

module.exports = { Connection };
