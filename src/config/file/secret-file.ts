import { type Description, fileKeyOf } from '../description.ts';
import { type Fault, formatKey, formatReason, type KeyPath } from '../fault/fault.ts';
import { isCredential } from '../value/kind.ts';
import { mask } from '../value/secret.ts';
import { root } from '../settings/root.ts';
import type { Raw } from '../source.ts';
import { isTree, listOf, type Tree } from './tree.ts';

/** A file that a secret was read from, and the key that names it. */
export interface SecretFile {
  readonly key: KeyPath;
  readonly path: string;
}

/**
 * Replaces each `…_file` key by the secret that the file holds (src/config/README.md, Secrets).
 *
 * A trailing newline is not part of the secret. The files are read before values are parsed, so that an
 * unreadable file is reported together with other faults; after a fault the mask stands for the secret.
 */
export function readSecretFiles(
  raw: Raw,
  readFile: (path: string) => string,
): { readonly tree: Tree; readonly files: readonly SecretFile[]; readonly faults: readonly Fault[] } {
  const files: SecretFile[] = [];
  const faults: Fault[] = [];

  function fill(description: Description, value: unknown, at: KeyPath): unknown {
    if (description.kind === 'list')
      return listOf(value)?.map((item, index) => fill(description.items, item, [...at, index])) ?? value;
    if (description.kind !== 'section' || !isTree(value)) return value;
    return Object.entries(description.keys).reduce<Tree>(
      (tree, [key, each]) =>
        each.kind === 'secret'
          ? fillSecret(tree, key, at)
          : fillPart(tree, key, fill(each, tree[key], [...at, key])),
      value,
    );
  }

  function fillSecret(tree: Tree, key: string, at: KeyPath): Tree {
    const fileKey = fileKeyOf(key);
    const path = tree[fileKey] ?? undefined;
    if (path === undefined) return tree;
    const pathAt = [...at, fileKey];
    const read = readSecret({ given: tree[key] ?? undefined, path, key }, pathAt);
    if ('secret' in read) return { ...tree, [key]: read.secret };
    faults.push({ key: formatKey(pathAt), text: read.fault, origin: raw.originOf(pathAt) });
    return { ...tree, [key]: mask };
  }

  function readSecret(
    { given, path, key }: { given: unknown; path: unknown; key: string },
    at: KeyPath,
  ): { secret: string } | { fault: string } {
    if (given !== undefined) return { fault: `is given as well as ${key}: remove one of them` };
    if (typeof path !== 'string') return { fault: 'must be a path' };
    try {
      const secret = readFile(path).replace(/(?<![\r\n])[\r\n]+$/, '');
      files.push({ key: at, path });
      if (secret === '') return { fault: `${path} is empty` };
      return isCredential(secret) ? { secret } : { fault: `${path} must hold one line of visible ASCII` };
    } catch (error) {
      return { fault: `cannot read ${path}: ${formatReason(error)}` };
    }
  }

  return { tree: fill(root, raw.tree, []) as Tree, files, faults };
}

function fillPart(tree: Tree, key: string, value: unknown): Tree {
  return value === tree[key] ? tree : { ...tree, [key]: value };
}
