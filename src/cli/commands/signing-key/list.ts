import { dayMs, formatDatetime } from '../../../domain/time.ts';
import { counted } from '../../../domain/text.ts';
import type { SigningDirectory, SigningKey } from '../../../lease/signing-keys.ts';
import { CommandError, defineCommand } from '../../command.ts';
import { formatFields, formatTable, instant, toned, whole, type Cell } from '../../format.ts';
import { hintFor } from '../../hint.ts';
import { changeKeys, locateSigningDirectory } from '../lease/signing-directory.ts';

/** Works without a daemon. */
export const command = defineCommand({
  command: 'list',
  describe: 'List the signing keys: which ends when, and which can sign here',
  builder: {},
  examples: [['latchkey signing-key list', 'also warns 60 days before the last key ends']],
  handler: async (args, output) => {
    const { directory } = locateSigningDirectory(args);
    const { keyEndsSoonMs, readSigningDirectory, signerOf } = await import('../../../lease/signing-keys.ts');
    const contents = await changeKeys('cannot list the keys', () => readSigningDirectory(directory));
    const { statement, faults } = contents;
    if (statement === null && faults.length === 0) {
      throw new CommandError([
        `latchkey: leases are not set up in ${directory}: ${hintFor(args)('lease setup')}`,
      ]);
    }
    const now = Date.now();
    const signer = signerOf(contents, now);
    const soon =
      signer === null || signer.notAfter - now < keyEndsSoonMs
        ? warnOfEnd(signer?.notAfter ?? null, now)
        : [];
    const warnings = [...faults, ...soon];
    if (warnings.length > 0) output.printError(warnings.map((text) => `latchkey: ${text}`));
    const keys = contents.keys.map((key) => ({ key, state: stateOf(key, signer?.key.kid ?? null, now) }));
    return await output.result(toJson(contents, keys), [
      formatFields({ issuer: statement?.issuer, version: statement?.version, directory }),
      formatTable(keys.map(({ key, state }) => toRow(key, state))),
    ]);
  },
});

type State = 'signs' | 'listed' | 'ended' | 'not_listed';

function stateOf({ kid, notAfter }: SigningKey, signing: string | null, now: number): State {
  if (notAfter === null) return 'not_listed';
  if (notAfter <= now) return 'ended';
  return kid === signing ? 'signs' : 'listed';
}

function warnOfEnd(notAfter: number | null, now: number): string[] {
  if (notAfter === null) return ['no key can sign here. Add a key: latchkey signing-key add'];
  const days = Math.floor((notAfter - now) / dayMs);
  return [`the last key ends in ${counted(days, 'day')}. Add the next key: latchkey signing-key add`];
}

type Listed = readonly { readonly key: SigningKey; readonly state: State }[];

function toJson({ statement, keys }: SigningDirectory, listed: Listed): object {
  return {
    issuer: statement?.issuer ?? null,
    version: statement?.version ?? null,
    total: keys.length,
    keys: listed.map(({ key, state }) => ({
      kid: key.kid,
      state,
      not_after: key.notAfter === null ? null : formatDatetime(key.notAfter),
      has_private_key: key.pair !== null,
    })),
  };
}

const states: Readonly<Record<State, Cell>> = {
  signs: toned('signs', 'good'),
  listed: 'listed',
  ended: toned('ended', 'faint'),
  not_listed: toned('not in the statement', 'warning'),
};

function toRow({ kid, notAfter, pair }: SigningKey, state: State): Record<string, Cell> {
  return {
    key: whole(kid),
    state: states[state],
    until: notAfter === null ? null : instant(formatDatetime(notAfter)),
    'private key': pair === null ? 'not here' : 'here',
  };
}
