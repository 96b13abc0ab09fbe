// A form made of the JSON schema of a tool's arguments: fields for texts, numbers, booleans, choices
// and lists of them, and a text area of JSON for everything else.

import { button, element, field, menu, nextId, visible } from "./dom.js";

/** How many references are followed: a schema can refer to itself. */
const REFERENCES_MAX = 16;

/** The value of a field that is left empty. */
const NOTHING = undefined;

/**
 * Makes the form of an object schema. Returns its element, and `read`, which returns the arguments or
 * throws an error with a sentence about the first field that does not fit.
 */
export function schemaForm(schema) {
  const root = schema ?? {};
  const fields = Object.entries(root.properties ?? {}).map(([name, part]) =>
    objectField(name, resolve(part, root), root, (root.required ?? []).includes(name)));
  const json = jsonField("Arguments as JSON", "The whole arguments, as one object.");
  const form = element("div", { class: "fields" }, fields.length ? fields.map(({ box }) => box) : element("p", { class: "faint" }, "This tool takes no arguments."));
  const whole = element("div", { hidden: true }, json.box);
  const toggle = button("Edit as JSON", () => {
    const isJson = whole.hidden;
    if (isJson) json.write(readFields(fields, false));
    [whole.hidden, form.hidden] = [!isJson, isJson];
    toggle.textContent = isJson ? "Edit as a form" : "Edit as JSON";
  }, { class: "quiet" });
  const read = () => (whole.hidden ? readFields(fields, true) : readObject(json));
  return { box: element("div", { class: "schema-form" }, form, whole, toggle), read };
}

function readFields(fields, isStrict) {
  const values = {};
  for (const one of fields) {
    const value = isStrict ? one.read() : attempt(one.read);
    if (value !== NOTHING) values[one.name] = value;
  }
  return values;
}

function attempt(read) {
  try {
    return read();
  } catch {
    return NOTHING;
  }
}

function readObject(json) {
  const value = json.read() ?? {};
  if (typeof value !== "object" || Array.isArray(value)) throw new FieldError("The arguments must be an object.");
  return value;
}

/** A value that does not fit, in words for people. */
class FieldError extends Error {}

/** Follows references, and takes the one form of a value that may also be null. */
function resolve(schema, root, depth = 0) {
  if (typeof schema !== "object" || schema === null || depth > REFERENCES_MAX) return {};
  if (typeof schema.$ref === "string" && schema.$ref.startsWith("#/")) {
    const parts = schema.$ref.slice(2).split("/").map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    const target = parts.reduce((value, part) => (Object.hasOwn(value ?? {}, part) ? value[part] : undefined), root);
    return resolve({ ...target, ...without(schema, "$ref") }, root, depth + 1);
  }
  const choices = schema.anyOf ?? schema.oneOf;
  const real = choices?.filter((choice) => choice.type !== "null");
  if (real?.length === 1) return resolve({ ...without(schema, "anyOf", "oneOf"), ...real[0] }, root, depth + 1);
  return schema;
}

const without = (object, ...names) => Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));

const typeOf = ({ type }) => (Array.isArray(type) ? type.find((one) => one !== "null") : type);

/** One field of the object: its name, its element, and how it is read. */
function objectField(name, schema, root, isRequired) {
  const label = `${name}${isRequired ? "" : " (optional)"}`;
  const description = [schema.description, limits(schema)].filter(Boolean).join(" ");
  const made = makeField({ label, name, schema, root, isRequired, description });
  const read = () => {
    const value = made.read();
    if (value === NOTHING && isRequired) throw new FieldError(`${visible(name)} is missing.`);
    return value;
  };
  return { name, box: made.box, read };
}

function limits({ minimum, maximum, minLength, maxLength, pattern }) {
  const parts = [
    minimum !== undefined && `at least ${minimum}`, maximum !== undefined && `at most ${maximum}`,
    minLength > 1 && `at least ${minLength} characters`, maxLength !== undefined && `at most ${maxLength} characters`,
    pattern && `matches ${pattern}`,
  ];
  const given = parts.filter(Boolean).join(", ");
  return given && `(${given})`;
}

function makeField(about) {
  const { schema } = about;
  const type = typeOf(schema);
  if (Array.isArray(schema.enum)) return choiceField(about, schema.enum);
  if (schema.const !== undefined) return choiceField(about, [schema.const]);
  if (type === "boolean") return choiceField(about, [true, false]);
  if (type === "string") return textField(about);
  if (type === "number" || type === "integer") return numberField(about, type);
  if (type === "array" && isSimple(resolve(schema.items, about.root))) return listField(about);
  return jsonField(about.label, about.description, schema.default, about.name);
}

const isSimple = (schema) => Array.isArray(schema.enum) || ["string", "number", "integer", "boolean"].includes(typeOf(schema));

function textField({ label, schema, description }) {
  const input = element("textarea", { rows: "1", spellcheck: "false" });
  input.value = typeof schema.default === "string" ? schema.default : "";
  return { box: field(label, input, description), read: () => (input.value === "" ? NOTHING : input.value) };
}

function numberField({ label, name, schema, description }, type) {
  const input = element("input", { type: "text", inputmode: "decimal", autocomplete: "off" });
  input.value = schema.default ?? "";
  const read = () => {
    const text = input.value.trim();
    if (text === "") return NOTHING;
    const value = Number(text);
    const fits = Number.isFinite(value) && (type === "number" || Number.isInteger(value));
    return check(input, fits, `${visible(name)} must be ${type === "number" ? "a number" : "a whole number"}.`) ?? value;
  };
  return { box: field(label, input, description), read };
}

/** Marks a field that does not fit, and throws the sentence. */
function check(input, fits, sentence) {
  input.setAttribute("aria-invalid", String(!fits));
  if (fits) return NOTHING;
  input.focus();
  throw new FieldError(sentence);
}

function choiceField({ label, schema, isRequired, description }, values) {
  const options = values.map((value, index) => [String(index), typeof value === "string" ? visible(value) : JSON.stringify(value)]);
  const given = values.findIndex((value) => JSON.stringify(value) === JSON.stringify(schema.default));
  const empty = isRequired && values.length === 1 ? [] : [["", "—"]];
  const select = menu([...empty, ...options]);
  if (given >= 0) select.value = String(given);
  return { box: field(label, select, description), read: () => (select.value === "" ? NOTHING : values[Number(select.value)]) };
}

/** A list of simple values: a field each. An empty list is left out unless the tool needs one. */
function listField({ label, name, schema, root, isRequired, description }) {
  const items = [];
  const rows = element("div", { class: "items" });
  const itemSchema = resolve(schema.items, root);
  const add = (value) => {
    const about = { label: `${name}, item`, name, schema: { ...itemSchema, default: value ?? itemSchema.default }, root, isRequired: true };
    const item = makeField(about);
    const remove = button("Remove", () => {
      items.splice(items.indexOf(item), 1);
      row.remove();
      more.focus();
    }, { class: "quiet", "aria-label": `Remove an item of ${name}` });
    const row = element("div", { class: "item" }, item.box, remove);
    items.push(item);
    rows.append(row);
  };
  const more = button("Add an item", () => {
    add();
    rows.lastElementChild.querySelector("input, select, textarea").focus();
  }, { class: "quiet" });
  (Array.isArray(schema.default) ? schema.default : []).forEach(add);
  const legend = element("legend", {}, visible(label));
  const box = element("fieldset", { class: "field" }, legend, description && element("p", { class: "faint" }, visible(description)), rows, more);
  const read = () => {
    const values = items.map((item) => item.read()).filter((value) => value !== NOTHING);
    return values.length || isRequired ? values : NOTHING;
  };
  return { box, read };
}

function jsonField(label, description, initial, name = label) {
  const input = element("textarea", { rows: "4", spellcheck: "false", class: "code", id: nextId("json") });
  const write = (value) => (input.value = value === undefined ? "" : JSON.stringify(value, null, 2));
  write(initial);
  const read = () => {
    const text = input.value.trim();
    if (text === "") return NOTHING;
    try {
      const value = JSON.parse(text);
      check(input, true);
      return value;
    } catch (error) {
      return check(input, false, `${visible(name)} is not JSON: ${error.message}`);
    }
  };
  return { box: field(label, input, `${description ? `${description} ` : ""}Write JSON.`), read, write };
}
