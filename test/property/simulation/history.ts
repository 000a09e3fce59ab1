/** What callers and people did and were told, and what the upstream said, as the simulation remembers it. */
export type History = {
  /** By "key kind": changes that were answered 2xx. */
  answered: Map<string, number>;
  /** By "key kind": changes that were asked for. */
  issued: Map<string, number>;
  /** By key: the numbers of the upstream's latest answers of either kind that reached the store. */
  said: Map<string, { enabled: number; disabled: number }>;
  /** How many answers of the upstream told the time. */
  answers: number;
  /** By key: how fresh the verdict was, and after how many answers. */
  ranks: Map<string, { rank: number; answers: number }>;
  /** Codes of coupons that were answered 201. */
  coupons: string[];
  /** By idempotency key: what was answered, null before the first answer. */
  once: Map<string, string | null>;
  /** Operations that a person decided about, and whether they were known to be uncertain then. */
  decided: Map<string, { inDoubt: boolean }>;
  /** Operations that were not finished in a store that was restored or copied. */
  restored: Set<string>;
  /** What was found broken at the moment of an answer. */
  broken: string[];
};

/** How far the upstream's books were looked through, and the latest operation that arrived by queue. */
export type Order = { checked: number; latest: Map<string, number> };

export function emptyHistory(): History {
  return {
    answered: new Map(),
    issued: new Map(),
    said: new Map(),
    answers: 0,
    ranks: new Map(),
    coupons: [],
    once: new Map(),
    decided: new Map(),
    restored: new Set(),
    broken: [],
  };
}

export function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
