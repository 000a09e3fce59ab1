/**
 * Suggests the key that was probably meant: at most two letters different, or one level deeper
 * (`LATCHKEY_LOG_LEVEL` has one underscore between the levels instead of two).
 */
export function suggest(mistyped: string, words: readonly string[]): string | undefined {
  const near = words
    .map((word) => ({ word, distance: measureDistance(mistyped, word) }))
    .filter(({ word, distance }) => distance <= Math.min(2, word.length / 2))
    .sort((left, right) => left.distance - right.distance);
  const above = words.find((word) => mistyped.startsWith(`${word}_`));
  return near[0]?.word ?? (above === undefined ? undefined : mistyped.replace(`${above}_`, `${above}.`));
}

/** Counts the insertions, deletions and replacements between two words (Levenshtein). */
function measureDistance(from: string, to: string): number {
  if (Math.abs(from.length - to.length) > 2) return Number.POSITIVE_INFINITY;
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [index, letter] of Array.from(from).entries()) {
    const next = [index + 1];
    for (const [column, other] of Array.from(to).entries()) {
      const replaced = (row[column] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
