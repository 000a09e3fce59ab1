import type { z } from 'zod';
import { isPlainToOthers } from './value/address.ts';
import { type Configuration, settings } from './configuration.ts';
import { type ConfigError, formatKey } from './errors.ts';
import type { SecretFile } from './file/secret-file.ts';
import { entryOf, itemOf, keysOf, metaOf } from './section.ts';
import type { Raw, Sources } from './source.ts';
import { isTree, normalized, valueAt } from './file/tree.ts';

/** Whether a file contains a secret: one of a key for secrets, or the password of the proxy. */
export function containsSecret(tree: unknown): boolean {
  const proxies = ['upstream', 'leases'].map((section) => valueAt(tree, [section, 'proxy']));
  return (
    proxies.some((proxy) => (URL.parse(String(proxy))?.password ?? '') !== '') ||
    hasSecretKey(settings, normalized(tree))
  );
}

function hasSecretKey(type: z.ZodType, value: unknown): boolean {
  const item = itemOf(type);
  if (item !== null) return Array.isArray(value) && value.some((each) => hasSecretKey(item, each));
  const entry = entryOf(type);
  if (entry !== null) return isTree(value) && Object.values(value).some((each) => hasSecretKey(entry, each));
  const keys = keysOf(type);
  if (keys !== null) return isTree(value) && keys.some((each) => hasSecretKey(each.type, value[each.key]));
  return metaOf(type).isSecret === true && (value ?? '') !== '';
}

export function warnOfPlainHttp({ upstream }: Configuration, { originOf }: Raw): readonly ConfigError[] {
  if (upstream === null || !isPlainToOthers(new URL(upstream.baseUrl))) return [];
  const text = 'is plain http to another machine: anyone on the network path can read the secrets; use https';
  return [{ key: 'upstream.base_url', text, origin: originOf(['upstream', 'base_url']) }];
}

/** A shorter secret can be guessed. */
const minSecretLength = 8;

export function warnOfShortSecrets(
  { upstream, products }: Configuration,
  { originOf }: Raw,
): readonly ConfigError[] {
  const secrets = [
    { at: ['upstream', 'api_key'], secret: upstream?.apiKey ?? null },
    { at: ['upstream', 'access_token'], secret: upstream?.accessToken ?? null },
    ...products.map(({ secret }, index) => ({ at: ['products', index, 'secret'], secret })),
  ];
  return secrets.flatMap(({ at, secret }) => {
    if (secret === null || secret.reveal().length >= minSecretLength) return [];
    const text = `is shorter than ${minSecretLength} characters, so it can be guessed: is it the whole secret?`;
    return [{ key: formatKey(at), text, origin: originOf(at) }];
  });
}

/** Warns of files with secrets that every user of this machine can read, or on Windows another user. */
export function warnOfReadableFiles(
  files: { readonly fileWithSecrets: string | null; readonly secretFiles: readonly SecretFile[] },
  { originOf, file }: Raw,
  { platform, isReadableByOthers }: Sources,
): readonly ConfigError[] {
  if (isReadableByOthers === undefined) return [];
  const { fileWithSecrets, secretFiles } = files;
  const readable =
    platform === 'win32'
      ? 'can be read by other users of this machine: latchkey doctor says who, and how to change that'
      : 'can be read by every user of this machine: chmod 0600';
  return [
    ...(fileWithSecrets !== null && isReadableByOthers(fileWithSecrets)
      ? [{ key: 'file', text: `${fileWithSecrets} holds a secret and ${readable}`, origin: file.origin }]
      : []),
    ...secretFiles
      .filter(({ path }) => isReadableByOthers(path))
      .map(({ key, path }) => ({
        key: formatKey(key),
        text: `${path} ${readable}`,
        origin: originOf(key),
      })),
  ];
}
