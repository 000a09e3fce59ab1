import { isLoopback } from '../value/address.ts';
import type { Configuration } from '../configuration.ts';
import type { Description } from '../description.ts';
import { type Fault, formatKey } from './fault.ts';
import type { SecretFile } from '../file/secret-file.ts';
import { root } from '../settings/root.ts';
import type { Raw, Sources } from '../source.ts';
import { isTree, listOf } from '../file/tree.ts';

/** Whether requests to an address leave this machine without encryption. */
export function isPlainToOthers(baseUrl: string): boolean {
  const { protocol, hostname } = new URL(baseUrl);
  return protocol === 'http:' && !isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'));
}

/** Whether a tree, as it stands in a file, has a secret in it. */
export function holdsSecret(value: unknown, description: Description = root): boolean {
  const { kind } = description;
  if (kind === 'section') {
    const described = Object.entries(description.keys);
    return isTree(value) && described.some(([key, each]) => holdsSecret(value[key], each));
  }
  if (kind === 'list') return (listOf(value) ?? []).some((item) => holdsSecret(item, description.items));
  if (kind === 'secret') return (value ?? '') !== '';
  return kind === 'proxyUrl' && (URL.parse(String(value))?.password ?? '') !== '';
}

export function warnOfPlainHttp({ upstream }: Configuration, { originOf }: Raw): readonly Fault[] {
  if (upstream === null || !isPlainToOthers(upstream.baseUrl)) return [];
  const text = 'is plain http to another machine: anyone on the network path can read the secrets; use https';
  return [{ key: 'upstream.base_url', text, origin: originOf(['upstream', 'base_url']) }];
}

/** Warns of files with secrets that every user of this machine can read. Windows has no such permission bits. */
export function warnOfReadableFiles(
  files: { readonly fileWithSecrets: string | null; readonly secretFiles: readonly SecretFile[] },
  { originOf, fileOrigin }: Raw,
  { platform, isWorldReadable }: Sources,
): readonly Fault[] {
  if (platform === 'win32' || isWorldReadable === undefined) return [];
  const { fileWithSecrets, secretFiles } = files;
  const readable = 'can be read by every user of this machine: chmod 0600';
  return [
    ...(fileWithSecrets !== null && isWorldReadable(fileWithSecrets)
      ? [{ key: 'file', text: `${fileWithSecrets} holds a secret and ${readable}`, origin: fileOrigin }]
      : []),
    ...secretFiles
      .filter(({ path }) => isWorldReadable(path))
      .map(({ key, path }) => ({
        key: formatKey(key),
        text: `${path} ${readable}`,
        origin: originOf(key),
      })),
  ];
}
