/** The median, the lowest and the highest of several rounds. */
export type Figure = { readonly median: number; readonly low: number; readonly high: number };

export function figure(values: readonly number[]): Figure {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (index: number): number => sorted[index] ?? Number.NaN;
  const middle = (sorted.length - 1) / 2;
  return {
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    low: at(0),
    high: at(sorted.length - 1),
  };
}

/** Runs each contestant once per round, in alternating order, so that a slow phase of the machine slows all of them. */
export async function alternate<Name extends string, Value>(
  rounds: number,
  contestants: Readonly<Record<Name, () => Promise<Value>>>,
): Promise<Record<Name, Value[]>> {
  const names = Object.keys(contestants) as Name[];
  const values = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Value[]>;
  for (let round = 0; round < rounds; round += 1) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      values[name].push(await contestants[name]());
    }
  }
  return values;
}

/** The quotients of the values of the same round. */
export function ratio(of: readonly number[], to: readonly number[]): Figure {
  return figure(of.map((value, round) => value / (to[round] ?? Number.NaN)));
}

/** The differences of the values of the same round. */
export function difference(of: readonly number[], to: readonly number[]): Figure {
  return figure(of.map((value, round) => value - (to[round] ?? Number.NaN)));
}
