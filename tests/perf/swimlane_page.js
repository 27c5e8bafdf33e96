// Runs the script of a swimlane page without a browser, on a document that only remembers what it must.
// Standard input: the data of a page and the hash of its address; standard output: what the test asks for.
"use strict";
const fs = require("fs"), vm = require("vm");
const {data, scripts, hash, ask} = JSON.parse(fs.readFileSync(0, "utf8"));
const calls = {}, texts = [];
const context = () => new Proxy({}, {
  get: (own, name) => name in own ? own[name] : (...args) => (calls[name] = (calls[name] || 0) + 1, name === "fillText" && texts.push(String(args[0]))),
  set: (own, name, value) => (own[name] = value, true),
});
class Element {
  constructor(kind) { Object.assign(this, {kind, style: {}, dataset: {}, children: [], attributes: {}, clientWidth: 1400, clientHeight: 900, textContent: "", value: "", offsetWidth: 10, offsetHeight: 10}); }
  getContext() { return this.context ??= context(); }
  append(...what) { this.children.push(...what); }
  appendChild(what) { return this.children.push(what), what; }
  replaceChildren(...what) { this.children = what; }
  insertRow() { return this.appendChild(new Element("tr")); }
  insertCell() { return this.appendChild(new Element("td")); }
  get childNodes() { return this.children; }
  setAttribute(name, value) { this.attributes[name] = value; }
  getBoundingClientRect() { return {left: 0, top: 0, width: 1400, height: 900}; }
  addEventListener() {} remove() {} focus() {} setPointerCapture() {}
}
const byId = {};
const document = {getElementById: id => byId[id] ??= new Element(id), createElement: kind => new Element(kind), querySelectorAll: () => [], documentElement: new Element("html"), body: new Element("body")};
document.getElementById("data").textContent = JSON.stringify(data);
const frames = [];
const world = vm.createContext({document, devicePixelRatio: 1, innerWidth: 1400, innerHeight: 900, location: {hash}, scrollBy() {}, addEventListener() {},
  requestAnimationFrame: f => frames.push(f), getComputedStyle: e => ({color: "rgb(1, 2, 3)"}), matchMedia: () => ({matches: false, addEventListener() {}}), URLSearchParams,
  ImageData: class { constructor(w, h) { this.data = new Uint8ClampedArray(4 * w * h); } }, console, byId, calls, texts,
  paintAll: () => { for (const key in calls) delete calls[key]; texts.length = 0; for (let n = 0; frames.length && n < 20; n++) frames.shift()(); }});
vm.runInContext(scripts + "\npaintAll();\n", world);
console.log(JSON.stringify(vm.runInContext(`(() => {${ask}})()`, world)));
