const durationUnits = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const sizeUnits = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 } as const;

/** Reads `500ms`, `30s`, `15m`, `24h`, `7d` as milliseconds; only 0 needs no unit. */
export function parseDuration(text: string): number | undefined {
  return text === '0' ? 0 : parseQuantity(text, durationUnits);
}

/** Writes milliseconds in the largest unit that divides them. */
export function formatDuration(durationMs: number): string {
  return durationMs === 0 ? '0s' : formatQuantity(durationMs, durationUnits);
}

/** Reads `16KiB`, `64MiB` or a plain number of bytes. */
export function parseSize(text: string): number | undefined {
  return parseQuantity(/^\d+$/.test(text) ? `${text}B` : text, sizeUnits);
}

/** Writes bytes in the largest unit that divides them. */
export function formatSize(bytes: number): string {
  return formatQuantity(bytes, sizeUnits);
}

type Units = Readonly<Record<string, number>>;

/** Reads a decimal number with its unit, rounded to the smallest unit. */
function parseQuantity(text: string, units: Units): number | undefined {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)([A-Za-z]+)$/.exec(text) ?? [];
  if (unit === undefined || !Object.hasOwn(units, unit)) return undefined;
  const quantity = Math.round(Number(amount) * (units[unit] ?? Number.NaN));
  return Number.isSafeInteger(quantity) ? quantity : undefined;
}

function formatQuantity(quantity: number, units: Units): string {
  const [unit, factor] = Object.entries(units).findLast(([, size]) => quantity % size === 0) ?? ['', 1];
  return `${quantity / factor}${unit}`;
}
