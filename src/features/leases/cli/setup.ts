import { basename, resolve } from 'node:path';
import { isInFolder } from '../../../config/defaults.ts';
import { issuerUrl } from '../../../config/setting-types.ts';
import { formatAddress, hostOf } from '../../../config/value/address.ts';
import { formatDatetime } from '../../../domain/time.ts';
import type { SetUp } from '../issuer/signing-files.ts';
import { CommandError, defineCommand, textOption, UsageError } from '../../../cli/command.ts';
import { formatFields, instant, type Shown, whole } from '../../../cli/format.ts';
import { formatPath } from '../../../cli/hint.ts';
import { chooseAddress } from '../../../cli/free-address.ts';
import {
  changeKeys,
  createStateDirectory,
  locateSigningDirectory,
  type SigningPlace,
} from './signing-directory.ts';

/** Where the configurations in examples/proxy/ send the requests of holders. */
const proxiedAddress = '127.0.0.1:8790';

/** Works without a daemon, and a running daemon needs no restart. */
export const setup = defineCommand({
  command: 'setup',
  describe: 'Make root keys and the first signing key of an issuer, and say what to do next',
  builder: {
    issuer: {
      ...textOption('Base URL at which holders reach this issuer; https, or http for this machine'),
      demandOption: true,
    },
    roots: {
      ...textOption(
        'Directory for the root keys; created if missing. Root keys in it are used again',
        'folder',
      ),
      demandOption: true,
    },
  },
  examples: [
    ['latchkey lease setup --issuer https://licenses.example.com --roots ./roots', 'at the issuer, once'],
  ],
  handler: async (args, output) => {
    const issuer = issuerUrl.safeParse(args.issuer);
    if (!issuer.success) {
      throw new UsageError(
        '--issuer must be an https URL without user, query or fragment; http only for this machine',
      );
    }
    const place = locateSigningDirectory(args);
    const rootsDirectory = resolve(args.roots);
    if (
      [place.stateDir, place.directory].some((directory) =>
        isInFolder(rootsDirectory, directory, process.platform),
      )
    ) {
      throw new CommandError([
        `latchkey: ${rootsDirectory} is in the state directory: root keys are kept offline, so choose another directory`,
      ]);
    }
    const { setUp } = await import('../issuer/signing-files.ts');
    const made = await changeKeys('leases were not set up', async () => {
      createStateDirectory(place);
      const where = { directory: place.directory, rootsDirectory, issuer: issuer.data };
      return await setUp(where, Date.now(), place.ownership);
    });
    const lines = explain(made, {
      ...place,
      rootsDirectory,
      addresses: await chooseAddresses(issuer.data, place),
    });
    return await output.result(toJson(made, place.directory), lines);
  },
});

function toJson({ statement, kid, roots }: SetUp, directory: string): object {
  return {
    issuer: statement.issuer,
    version: statement.version,
    kid,
    not_after: endOf(statement),
    signing_dir: directory,
    roots: roots.map((root) => ({
      kid: root.kid,
      file: root.privateFile,
      public_file: root.publicFile,
      jwk: root.jwk,
    })),
  };
}

function endOf({ keys }: SetUp['statement']): string {
  return formatDatetime(keys[0]?.notAfter ?? 0);
}

/** Addresses to configure. `listen.public` of the issuer; null: `listen.tcp` serves leases already. */
interface Addresses {
  readonly public: { readonly address: string; readonly isForProxy: boolean } | null;
  /** `listen.tcp` of a holder; null: the default is free there. */
  readonly holder: string | null;
}

/** Without a proxy, holders on this machine reach the issuer at its own port, and need another port themselves. */
async function chooseAddresses(issuer: string, { tcp }: SigningPlace): Promise<Addresses> {
  const url = new URL(issuer);
  if (url.protocol === 'https:')
    return { public: { address: proxiedAddress, isForProxy: true }, holder: null };
  const address = { host: hostOf(url), port: url.port === '' ? 80 : Number(url.port) };
  const holder = await chooseAddress([address.port, ...tcp.map(({ port }) => port)]);
  if (url.pathname !== '/') return { public: { address: proxiedAddress, isForProxy: true }, holder };
  if (tcp.some(({ port }) => port === address.port)) return { public: null, holder };
  return { public: { address: formatAddress(address), isForProxy: false }, holder };
}

type Explained = {
  readonly directory: string;
  readonly rootsDirectory: string;
  readonly addresses: Addresses;
};

function explain(
  { statement, kid, roots }: SetUp,
  { directory, rootsDirectory, addresses }: Explained,
): Shown {
  const [first, second] = roots;
  const privateFiles = roots.map(({ privateFile }) => basename(privateFile)).join(' and ');
  const publicFiles = roots.map(({ publicFile }) => basename(publicFile));
  return [
    formatFields({
      issuer: statement.issuer,
      'signing key': whole(kid),
      until: instant(endOf(statement)),
      directory,
      'root keys': roots.map(({ privateFile }) => formatPath(privateFile)).join(', '),
    }),
    [
      `1. Move the private keys ${privateFiles} from ${formatPath(rootsDirectory)}`,
      '   to two places offline, such as two USB sticks, and delete them here. Anyone with a root key can',
      '   sign licenses in your name. You need one of the two again to make the next signing key, before',
      `   ${endOf(statement).slice(0, 10)}. The public keys ${publicFiles.join(' and ')} stay here, for step 3.`,
    ].join('\n'),
    explainListener(statement.issuer, addresses.public),
    [
      `3. The configuration of each holder, with ${publicFiles.join(' and ')} in its folder:`,
      '  leases:',
      `    issuer: ${statement.issuer}`,
      `    roots: [${publicFiles.map((name) => `./${name}`).join(', ')}]`,
      '  products:',
      '    - key: PRODUCT_KEY',
      ...(addresses.holder === null ? [] : ['  listen:', `    tcp: ${addresses.holder}`]),
    ].join('\n'),
    [
      '4. Compile into the program, which reads them from no file and no environment variable:',
      `  issuer: ${JSON.stringify(statement.issuer)}`,
      `  roots: [`,
      `    ${JSON.stringify(first.jwk)},`,
      `    ${JSON.stringify(second.jwk)}`,
      '  ]',
    ].join('\n'),
    'Before the signing key ends, make the next one: latchkey lease signing-key rotate --root root-1.jwk. The guide: examples/guides/leases.md',
  ];
}

function explainListener(issuer: string, listener: Addresses['public']): string {
  const answers = `${issuer}/lease/v1/keys answers.`;
  if (listener === null) return `2. The issuer needs no setting: listen.tcp serves leases. ${answers}`;
  const what = listener.isForProxy ? 'an address for your TLS proxy' : 'the address for holders';
  return [
    `2. In the configuration of the issuer, ${what}:`,
    '  listen:',
    `    public: { address: '${listener.address}' }`,
    `   Restart the daemon for this setting. Then ${answers}`,
  ].join('\n');
}
