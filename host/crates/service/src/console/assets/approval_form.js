// The form that an MCP server asks its user to fill in, as a form of a JSON schema. The service checks
// the values.

import { schemaForm } from "./schema_form.js";

/** Makes the form of a question's fields. Its `read` returns the values. */
export const questionForm = (fields) =>
  schemaForm({
    properties: Object.fromEntries(fields.map((field) => [field.name, schemaOf(field)])),
    required: fields.filter(({ required }) => required).map(({ name }) => name),
  });

function schemaOf({ title, description, default: initial, ...kind }) {
  const words = [title, description].filter(Boolean).join(": ");
  return { ...typeOf(kind), description: words || undefined, default: initial };
}

function typeOf({ kind, options = [], is_whole, minimum, maximum, min_chars, max_chars }) {
  const values = options.map(({ value }) => value);
  switch (kind) {
    case "yes-no":
      return { type: "boolean" };
    case "choice":
      return { enum: values };
    case "choices":
      return { type: "array", items: { enum: values } };
    case "number":
      return { type: is_whole ? "integer" : "number", minimum: minimum ?? undefined, maximum: maximum ?? undefined };
    default:
      return { type: "string", minLength: min_chars ?? undefined, maxLength: max_chars ?? undefined };
  }
}
