import type { z } from 'zod';
import { settings } from '../configuration.ts';
import { type ConfigError, formatKey, formatReason, type KeyPath } from '../errors.ts';
import { entryOf, itemOf, keysOf, metaOf } from '../section.ts';
import type { Raw } from '../source.ts';
import { isHeaderValue, mask } from '../setting-types.ts';
import { isTree, type Tree } from './tree.ts';

export interface SecretFile {
  readonly key: KeyPath;
  readonly path: string;
}

/**
 * Replaces each `…_file` key by the secret that the file contains (src/config/README.md, Secrets).
 *
 * A trailing newline is not part of the secret. The files are read before values are parsed, so that an
 * unreadable file is reported together with other errors; after an error the mask stands for the secret.
 */
export function readSecretFiles(
  raw: Raw,
  readFile: (path: string) => string,
): { readonly tree: Tree; readonly files: readonly SecretFile[]; readonly errors: readonly ConfigError[] } {
  const files: SecretFile[] = [];
  const errors: ConfigError[] = [];

  function readPart(type: z.ZodType, value: unknown, at: KeyPath): unknown {
    const item = itemOf(type);
    if (item !== null && Array.isArray(value))
      return value.map((each, index) => readPart(item, each, [...at, index]));
    const entry = entryOf(type);
    if (entry !== null && isTree(value)) {
      const entries = Object.entries(value);
      return Object.fromEntries(entries.map(([name, each]) => [name, readPart(entry, each, [...at, name])]));
    }
    const keys = keysOf(type);
    if (keys === null || !isTree(value)) return value;
    const tree: Record<string, unknown> = { ...value };
    for (const { key, type: each } of keys) {
      if (metaOf(each).isSecret === true) replaceFile(tree, key, at);
      else if (key in tree) tree[key] = readPart(each, tree[key], [...at, key]);
    }
    return tree;
  }

  function replaceFile(tree: Record<string, unknown>, key: string, at: KeyPath): void {
    const fileKey = `${key}_file`;
    const { [key]: value, [fileKey]: path } = tree;
    if (path === undefined) return;
    const pathAt = [...at, fileKey];
    const read =
      value === undefined
        ? readSecret(path, pathAt)
        : { error: `is given as well as ${key}: remove one of them` };
    if ('error' in read)
      errors.push({ key: formatKey(pathAt), text: read.error, origin: raw.originOf(pathAt) });
    tree[key] = 'secret' in read ? read.secret : mask;
    delete tree[fileKey];
  }

  function readSecret(path: unknown, key: KeyPath): { secret: string } | { error: string } {
    if (typeof path !== 'string') return { error: 'must be a path' };
    try {
      const secret = readFile(path).replace(/(?<![\r\n])[\r\n]+$/, '');
      files.push({ key, path });
      if (secret === '') return { error: `${path} is empty` };
      return isHeaderValue(secret) ? { secret } : { error: `${path} must hold one line of visible ASCII` };
    } catch (error) {
      return { error: `cannot read ${path}: ${formatReason(error)}` };
    }
  }

  return { tree: readPart(settings, raw.tree, []) as Tree, files, errors };
}
