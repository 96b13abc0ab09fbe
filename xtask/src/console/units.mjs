// Checks of single modules of the console. They run in the page, where there is a document.

/** Runs them, and returns `[name, whether it is so, what was found]`. */
export async function unitRows() {
  const { markdown } = await import("/console/markdown.js");
  const { schemaForm } = await import("/console/schema_form.js");
  const { visible } = await import("/console/dom.js");
  const rows = [];
  const check = (name, found, wanted) => rows.push([name, JSON.stringify(found) === JSON.stringify(wanted), JSON.stringify(found)]);

  const shape = (node) => (node.nodeType === 3 ? node.data : [node.localName, ...[...node.childNodes].map(shape)]);
  const shapes = (text) => [...markdown(text).childNodes].map(shape);
  check("emphasis", shapes("a **b** `c` *d*"), [["p", "a ", ["strong", "b"], " ", ["code", "c"], " ", ["em", "d"]]]);
  check("markup stays text", shapes("<b>a</b> &lt;"), [["p", "<b>a</b> &lt;"]]);
  check("heading", shapes("# a\nb"), [["h3", "a"], ["p", "b"]]);
  check("nested list", shapes("- a\n  - b\n- c"), [["ul", ["li", "a", ["ul", ["li", "b"]]], ["li", "c"]]]);
  check("open fence", shapes("```\na\n**b**"), [["pre", ["code", "a\n**b**"]]]);
  check("not a table", shapes("| a |\nb"), [["p", "| a |\nb"]]);
  const links = (text) => [...markdown(text).querySelectorAll("a")].map((link) => [link.href, link.rel, link.textContent]);
  const rel = "noopener noreferrer";
  check("link", links("[a](https://b.example/c)"), [["https://b.example/c", rel, "a"]]);
  check("address", links("see https://b.example/c."), [["https://b.example/c", rel, "https://b.example/c"]]);
  for (const target of ["javascript:1", "JAVASCRIPT:1", "data:text/html,x", "/v1/tools", "//b.example", "file:///etc", "java\tscript:1"]) {
    check(`no link to ${target}`, links(`[a](${target})`), []);
  }
  check("no picture", markdown("![a](https://b.example/c.png)").querySelectorAll("img").length, 0);
  check("hidden characters", visible("a\u202Eb\u200B\u0007"), "a\\u{202e}b\\u{200b}\\u{7}");

  const form = (schema, fill) => {
    const made = schemaForm(schema);
    fill([...made.box.querySelectorAll(".fields :is(input, textarea, select)")], made.box);
    try {
      return made.read();
    } catch (error) {
      return error.message;
    }
  };
  const object = (properties, required = []) => ({ type: "object", properties, required });
  const set = (...values) => (inputs) => values.forEach((value, index) => (inputs[index].value = value));
  check("text", form(object({ a: { type: "string" } }), set("b")), { a: "b" });
  check("nothing", form(object({ a: { type: "string" } }), set("")), {});
  check("missing", form(object({ a: { type: "string" } }, ["a"]), set("")), "a is missing.");
  check("integer", form(object({ a: { type: "integer" } }), set("7")), { a: 7 });
  check("no integer", form(object({ a: { type: "integer" } }), set("7.5")), "a must be a whole number.");
  check("number", form(object({ a: { type: ["number", "null"] } }), set("-1e3")), { a: -1000 });
  check("no number", form(object({ a: { type: "number" } }), set("Infinity")), "a must be a number.");
  check("boolean", form(object({ a: { type: "boolean" } }), set("1")), { a: false });
  check("choice", form(object({ a: { enum: ["x", 2, null] } }), set("1")), { a: 2 });
  check("default", form(object({ a: { type: "string", default: "d" } }), () => {}), { a: "d" });
  check("object", form(object({ a: { type: "object" } }), set('{"b": [1]}')), { a: { b: [1] } });
  check("no JSON", String(form(object({ a: { type: "object" } }), set("{"))).startsWith("a is not JSON: "), true);
  check("reference", form({ ...object({ a: { $ref: "#/$defs/b" } }), $defs: { b: { type: "integer" } } }, set("3")), { a: 3 });
  check("endless reference", form({ ...object({ a: { $ref: "#/$defs/b" } }), $defs: { b: { $ref: "#/$defs/b" } } }, set("[]")), { a: [] });
  check("optional by anyOf", form(object({ a: { anyOf: [{ type: "integer" }, { type: "null" }] } }), set("4")), { a: 4 });
  check("a name of objects", form(object({ constructor: { $ref: "#/constructor" } }), set("1")), { constructor: 1 });
  const list = (inputs, box) => {
    const more = [...box.querySelectorAll("button")].find((one) => one.textContent === "Add an item");
    more.click();
    more.click();
    [...box.querySelectorAll(".item textarea")].forEach((input, index) => (input.value = `i${index}`));
  };
  check("list", form(object({ a: { type: "array", items: { type: "string" } } }), list), { a: ["i0", "i1"] });
  check("empty list", form(object({ a: { type: "array", items: { type: "string" } } }, ["a"]), () => {}), { a: [] });
  return rows;
}
