/** What the simulation recorded: actions and responses of callers, people and the upstream. */
export type History = {
  /** By "key kind": changes that were answered 2xx. */
  answered: Map<string, number>;
  /** By "key kind": changes that were asked for. */
  issued: Map<string, number>;
  /** By key: the numbers of the upstream's latest answers of either kind that reached the store. */
  said: Map<string, { enabled: number; disabled: number }>;
  /** How many responses of the upstream had a date. */
  answers: number;
  /** By key: how fresh the verdict was, and after how many answers. */
  ranks: Map<string, { rank: number; answers: number }>;
  /** Codes of coupons with a 201 response. */
  coupons: string[];
  /** By idempotency key: the response, null before the first one. */
  once: Map<string, string | null>;
  /** Operations that a person decided about, and whether they were known to be uncertain then. */
  decided: Map<string, { inDoubt: boolean }>;
  /** Operations that were not finished in a store that was restored or copied. */
  restored: Set<string>;
  /** Violations that were found at a response. */
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
