/**
 * A place in the history of changes on PostgreSQL: every transaction that the snapshot `base` shows is before it. (The id of
 * a transaction is no place: transactions commit in another order.) `part`: a reader has also seen the changes that the
 * snapshot `until` shows, up to one of a transaction and a license key.
 */
export type Position = {
  base: string;
  part: { until: string; xid: string; licenseKey: string } | null;
};

/** The largest transaction id, and one more. */
const maxXid = 2n ** 63n;

export function formatPosition({ base, part }: Position): string {
  return part === null ? base : JSON.stringify([base, part.until, part.xid, part.licenseKey]);
}

/** Null: the text is not a position. PostgreSQL would refuse it with an error. */
export function parsePosition(text: string): Position | null {
  if (!text.startsWith('[')) return isSnapshot(text) ? { base: text, part: null } : null;
  const members = parseTexts(text);
  const [base = '', until = '', xid = '', licenseKey = ''] = members;
  if (members.length !== 4 || !isSnapshot(base) || !isSnapshot(until) || !/^\d{1,18}$/.test(xid)) return null;
  return licenseKey.isWellFormed() && !licenseKey.includes('\0')
    ? { base, part: { until, xid, licenseKey } }
    : null;
}

function parseTexts(text: string): string[] {
  try {
    const parsed: unknown = JSON.parse(text);
    return Array.isArray(parsed) ? parsed.filter((each) => typeof each === 'string') : [];
  } catch {
    return [];
  }
}

/** Whether PostgreSQL accepts a text as a `pg_snapshot`: `xmin:xmax:running,…`. */
function isSnapshot(text: string): boolean {
  const [, first = '', last = '', list = ''] = /^(\d{1,19}):(\d{1,19}):([\d,]*)$/.exec(text) ?? [];
  if (first === '') return false;
  const [xmin, xmax] = [BigInt(first), BigInt(last)];
  if (xmin < 1n || xmax < xmin || xmax >= maxXid) return false;
  if (list === '') return true;
  let before = xmin - 1n;
  return list.split(',').every((each) => {
    if (!/^\d{1,19}$/.test(each)) return false;
    const running = BigInt(each);
    const isNext = running > before && running < xmax;
    before = running;
    return isNext;
  });
}
