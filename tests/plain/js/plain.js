// The plain component in JavaScript: each value comes back as it came.
const all = (...values) => values;
const one = (value) => value;

export const echo = {
  integers: all,
  floats: all,
  texts: all,
  bytes: one,
  places: one,
  shapes: one,
  choices: all,
  options: all,
  results: all,
};

export function greet(name, greeting) {
  return `${greeting ?? "Hello"}, ${name}!`;
}
