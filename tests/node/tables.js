// The tables beside the Python normalizers: codes and countries are data, shared by both.
import { readFileSync } from 'node:fs';

const FOLDER = new URL('../../events/', import.meta.url);

function rows(name) {
  const [head, ...lines] = readFileSync(new URL(name, FOLDER), 'utf-8').trim().split(/\r?\n/).map(cells);
  return lines.map((line) => Object.fromEntries(head.map((column, place) => [column, line[place] ?? ''])));
}

const cells = (line) =>
  [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, bare]) => quoted?.replaceAll('""', '"') ?? bare);

const key = (type, code) => `${type}\x1f${code}`;

export const UPS_CODES = new Map(
  rows('carriers/ups_codes.csv').map((row) => [
    key(row.type, row.code),
    { kind: row.kind || 'scan', status: row.status || null, reason: row.reason || null },
  ]),
);

export const upsMeaning = (type, code) => UPS_CODES.get(key(type ?? '', code ?? ''));

export const COUNTRIES = new Map(
  rows('parsing/countries.csv').flatMap((row) =>
    [row.alpha_3, row.name].filter(Boolean).map((name) => [name.toLowerCase(), row.alpha_2]),
  ),
);
