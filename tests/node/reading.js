// Reading what the Python normalizers read, in the same way or not at all: whatever might come out differently is unsure.

/** Thrown where this worker is not sure to read as a Python worker would. */
export class Unsure extends Error {}

export const unsure = (why) => {
  throw new Unsure(why);
};

const DEPTH_MAX = 254;
const STRINGS = /"(?:[^"\\]|\\.)*"/gs;
// NUL, surrogates and escaped quotes; fractions, exponents and integers beyond 2^53: JavaScript would read them otherwise.
const ODD_ESCAPE = /\\u(?:0000|0022|[dD][89a-fA-F])/;
const ODD_NUMBER = /\d[.eE]|\d{16}/;
const PYTHON_BLANK = '[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]';
const ENDS = new RegExp(`^${PYTHON_BLANK}+|${PYTHON_BLANK}+$`, 'g');
const BLANKS = new RegExp(`${PYTHON_BLANK}+`, 'g');
const QUOTES = /"/g;

export function readJson(body) {
  let printed, value;
  try {
    printed = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
    value = JSON.parse(printed);
  } catch {
    unsure('not JSON in UTF-8');
  }
  if (ODD_ESCAPE.test(printed)) unsure('an escape that is read in two ways');
  if (ODD_NUMBER.test(printed.replace(STRINGS, ''))) unsure('a number that is read in two ways');
  refuseDepth(value, 1);
  // a key that stood twice is missing from what is printed again, and so are its quotes
  if (JSON.stringify(value).match(QUOTES)?.length !== printed.match(QUOTES)?.length) unsure('a key that stands twice');
  return value;
}

function refuseDepth(value, depth) {
  if (typeof value !== 'object' || value === null) return;
  if (depth > DEPTH_MAX) unsure('nested too deeply');
  for (const member of Object.values(value)) refuseDepth(member, depth + 1);
}

export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

export const strip = (printed) => printed.replace(ENDS, '');

export const collapse = (printed) => strip(printed.replace(BLANKS, ' '));

/** Text as printed, trimmed; null for everything that is none. An integer is taken. */
export function text(value) {
  if (typeof value === 'string') return strip(value) || null;
  return typeof value === 'number' ? String(value) : null;
}

/** The object's own field: `toString` and its like are none. */
export const field = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);

/** An object without its fields of no value, as the hand-over wants it. */
export const stated = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined));
