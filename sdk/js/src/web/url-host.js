// The host of a URL: a name, an IPv4 or an IPv6 address.

const FORBIDDEN = /[\0-\x20"#%/:<>?@[\\\]^`{|}\x7f]/;
const FORBIDDEN_OPAQUE = /[\0\t\n\r #/:<>?@[\\\]^|]/;

/** Returns the host in its normal form, or `undefined` if it is invalid. */
export function hostOf(text, isSpecial) {
  if (text.startsWith("[")) return text.endsWith("]") ? ipv6(text.slice(1, -1)) : undefined;
  if (!isSpecial) return FORBIDDEN_OPAQUE.test(text) ? undefined : text;
  const name = ascii(unescaped(text));
  if (name === undefined || FORBIDDEN.test(name)) return undefined;
  const last = name.replace(/\.$/, "").split(".").at(-1);
  return /^(\d+|0x[0-9a-f]*)$/.test(last) ? ipv4(name) : name;
}

function unescaped(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Writes a name in lower case, with Punycode for labels beyond ASCII. */
function ascii(name) {
  const labels = name.normalize("NFKC").toLowerCase().replace(/[\u3002\uff0e\uff61]/g, ".").split(".");
  const written = labels.map((label) => (/^[\0-\x7f]*$/.test(label) ? label : `xn--${punycode([...label])}`));
  return written.join(".");
}

function ipv4(name) {
  const parts = name.replace(/\.$/, "").split(".");
  const numbers = parts.map(ipv4Number);
  if (parts.length > 4 || numbers.some(Number.isNaN)) return undefined;
  const last = numbers.pop();
  if (numbers.some((number) => number > 255) || last >= 256 ** (4 - numbers.length)) return undefined;
  const value = numbers.reduce((sum, number, index) => sum + number * 256 ** (3 - index), last);
  return [3, 2, 1, 0].map((power) => Math.floor(value / 256 ** power) % 256).join(".");
}

function ipv4Number(part) {
  if (/^0x[0-9a-f]*$/.test(part)) return part === "0x" ? 0 : Number(part);
  if (/^0[0-7]+$/.test(part)) return Number.parseInt(part, 8);
  return /^\d+$/.test(part) && !/^0\d/.test(part) ? Number(part) : NaN;
}

function ipv6(text) {
  const halves = withoutIpv4Tail(text)?.split("::");
  if (!halves || halves.length > 2) return undefined;
  const [head, tail] = halves.map((half) => (half === "" ? [] : half.split(":")));
  const missing = 8 - head.length - (tail?.length ?? 0);
  if (tail ? missing < 1 : missing !== 0) return undefined;
  const groups = tail ? [...head, ...Array(missing).fill("0"), ...tail] : head;
  if (!groups.every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined;
  return `[${shortened(groups.map((group) => Number.parseInt(group, 16).toString(16)))}]`;
}

/** Replaces an IPv4 address at the end by two groups. */
function withoutIpv4Tail(text) {
  const tail = /(?<=:)\d+(\.\d+){3}$/.exec(text)?.[0];
  if (!tail) return text;
  const bytes = tail.split(".").map(Number);
  if (bytes.some((byte) => byte > 255)) return undefined;
  const group = (high, low) => (high * 256 + low).toString(16);
  return text.slice(0, -tail.length) + `${group(bytes[0], bytes[1])}:${group(bytes[2], bytes[3])}`;
}

/** Writes the first longest run of zeros as `::`. */
function shortened(groups) {
  const text = groups.join(":");
  const runs = [...text.matchAll(/(?<![0-9a-f])0(?::0)+(?![0-9a-f])/g)].map(([run]) => run);
  const longest = runs.sort((a, b) => b.length - a.length)[0];
  if (!longest) return text;
  const at = text.search(new RegExp(`(?<![0-9a-f])${longest}(?![0-9a-f])`));
  const before = text.slice(0, at).replace(/:$/, "");
  return `${before}::${text.slice(at + longest.length).replace(/^:/, "")}`;
}

// Punycode, with the parameters of RFC 3492.
const [BASE, TMIN, TMAX, SKEW, DAMP, FIRST_BIAS, FIRST_POINT] = [36, 1, 26, 38, 700, 72, 128];

function punycode(chars) {
  const points = chars.map((char) => char.codePointAt(0));
  const basic = points.filter((point) => point < FIRST_POINT);
  let output = basic.length > 0 ? `${String.fromCharCode(...basic)}-` : "";
  let [point, delta, bias, handled] = [FIRST_POINT, 0, FIRST_BIAS, basic.length];
  while (handled < points.length) {
    const next = Math.min(...points.filter((one) => one >= point));
    delta += (next - point) * (handled + 1);
    point = next;
    for (const one of points) {
      if (one < point) delta += 1;
      if (one !== point) continue;
      output += variableLength(delta, bias);
      bias = adapted(delta, handled + 1, handled === basic.length);
      [delta, handled] = [0, handled + 1];
    }
    [delta, point] = [delta + 1, point + 1];
  }
  return output;
}

function variableLength(delta, bias) {
  let [output, rest] = ["", delta];
  for (let at = BASE; ; at += BASE) {
    const threshold = Math.min(Math.max(at - bias, TMIN), TMAX);
    if (rest < threshold) return output + digit(rest);
    output += digit(threshold + ((rest - threshold) % (BASE - threshold)));
    rest = Math.floor((rest - threshold) / (BASE - threshold));
  }
}

function digit(value) {
  return String.fromCharCode(value < 26 ? 97 + value : 22 + value);
}

function adapted(delta, count, isFirst) {
  let rest = Math.floor(isFirst ? delta / DAMP : delta / 2);
  rest += Math.floor(rest / count);
  let steps = 0;
  for (; rest > ((BASE - TMIN) * TMAX) / 2; steps += BASE) rest = Math.floor(rest / (BASE - TMIN));
  return steps + Math.floor(((BASE - TMIN + 1) * rest) / (rest + SKEW));
}
