import type { Configuration } from './configuration.ts';
import { formatKey } from './fault.ts';
import { effective } from './show.ts';
import { leavesOf } from './tree.ts';

/** The keys, as an operator writes them, whose values differ; a secret counts by its value, and is not told. */
export function changedKeys(before: Configuration, after: Configuration): string[] {
  const [old, young] = [valuesOf(before), valuesOf(after)];
  return [...new Set([...old.keys(), ...young.keys()])].filter((key) => old.get(key) !== young.get(key));
}

function valuesOf(configuration: Configuration): Map<string, string> {
  const { upstream, products } = configuration;
  return new Map([
    ...leavesOf(effective(configuration)).map(([path, value]): [string, string] => [
      formatKey(path),
      String(value),
    ]),
    ['upstream.api_key', upstream?.apiKey?.reveal() ?? ''],
    ['upstream.proxy', upstream?.proxy?.reveal() ?? ''],
    ...products.map(({ secret }, index): [string, string] => [
      formatKey(['products', index, 'secret']),
      secret.reveal(),
    ]),
  ]);
}
