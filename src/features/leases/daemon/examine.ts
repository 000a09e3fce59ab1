import { existsSync } from 'node:fs';
import { type Configuration, signingDirectoryOf } from '../../../config/configuration.ts';
import type { Finding, Hint } from '../../../domain/finding.ts';

/** Examines a holder, or an issuer. Loads the library for signatures only if leases are used. */
export async function examine(configuration: Configuration, hint: Hint): Promise<readonly Finding[]> {
  if (configuration.role === 'holder') {
    const { examineIssuer } = await import('./examine-issuer.ts');
    return await examineIssuer(configuration);
  }
  if (!existsSync(signingDirectoryOf(configuration))) return [];
  const { examineSigningKeys } = await import('./examine-signing-keys.ts');
  return await examineSigningKeys(configuration, hint);
}
