import { features } from '../features.ts';
import { isTree, valueAt } from './file/tree.ts';

type Engine = NonNullable<(typeof features)[number]['engine']>;

/** The engine that some settings ask for; null: the records are in the state directory. */
export function engineIn(settings: object): Engine | null {
  const engines = features.flatMap(({ engine }) => engine ?? []);
  return engines.find(({ section }) => isTree(valueAt(settings, section))) ?? null;
}
