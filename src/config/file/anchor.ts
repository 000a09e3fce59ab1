import { resolve } from 'node:path';
import { fileKeyOf, settingsOf } from '../description.ts';
import { root } from '../settings/root.ts';
import { isTree } from './tree.ts';

const pathKeys: ReadonlySet<string> = new Set(
  settingsOf(root).flatMap(({ path, setting }) => {
    const key = path.at(-1) ?? '';
    if (setting.kind === 'secret') return [fileKeyOf(key)];
    return setting.kind === 'path' || setting.kind === 'socketPath' ? [key] : [];
  }),
);

/** Makes the relative paths in a value absolute, from the folder that they are relative to. */
export function anchorPaths(value: unknown, folder: string): unknown {
  if (Array.isArray(value)) return value.map((item) => anchorPaths(item, folder));
  if (!isTree(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [
      key,
      pathKeys.has(key) && typeof item === 'string' && item !== ''
        ? resolve(folder, item)
        : anchorPaths(item, folder),
    ]),
  );
}
