import { locateDaemon } from '../../config/load.ts';
import { CommandError, defineCommand } from '../command.ts';
import { configurationError, toLoadOptions } from '../configuration.ts';
import { exitCode } from '../exit-code.ts';

interface Holdings {
  readonly unfinished: Readonly<Record<string, number>>;
  readonly unconfirmedUses: number;
  readonly records: Readonly<Record<keyof typeof recordNames, number>>;
  readonly replaced: readonly string[];
}

const recordNames = {
  products: 'products',
  licenses: 'license keys',
  purchases: 'purchases',
  collections: 'collections',
  coupons: 'coupons',
  redemptions: 'redemptions of coupons',
  accounts: 'accounts besides the first',
  tokens: 'tokens',
  leases: 'leases of this device, whose key is lost as well',
} as const;

export const commands = [
  defineCommand({
    command: 'show',
    describe: 'Show what would be lost with the state directory; needs no daemon',
    builder: { check: { type: 'boolean', default: false, describe: 'Exit 1 if something would be lost' } },
    examples: [['latchkey state show --check', 'before it is removed']],
    handler: async (args, output) => {
      const located = locateDaemon(toLoadOptions(args));
      if (!located.ok) throw configurationError(located.errors);
      const { stateDir, engine } = located.location;
      const { examineContents } = await import('../../daemon/store/contents.ts');
      const examined = examineContents(stateDir);
      if (!examined.ok) throw new CommandError([`latchkey: cannot read ${stateDir}: ${examined.reason}`]);
      const { role, unfinished, unconfirmedUses, records, replaced } = examined.contents;
      const losses = listLosses(examined.contents);
      const where = engine === null ? '' : `: the records are in ${engine.place}`;
      const shown =
        losses.length === 0
          ? `Nothing would be lost with ${stateDir}${where}.`
          : [`With ${stateDir} would be lost:`, ...losses.map((text) => `  ${text}`)].join('\n');
      const json = {
        state_dir: stateDir,
        role,
        unfinished,
        unconfirmed_uses: unconfirmedUses,
        ...records,
        replaced,
      };
      await output.result(json, shown);
      return args.check && losses.length > 0 ? exitCode.failed : exitCode.done;
    },
  }),
];

function listLosses({ unfinished, unconfirmedUses, records, replaced }: Holdings): readonly string[] {
  const waiting = Object.entries(unfinished).filter(([, count]) => count > 0);
  const states = waiting.map(([state, count]) => `${count} ${state}`).join(', ');
  const nouns = Object.keys(recordNames) as (keyof typeof recordNames)[];
  return [
    ...(waiting.length > 0 ? [`changes that the upstream has not accepted: ${states}`] : []),
    ...(unconfirmedUses > 0 ? [`uses that the issuer of leases has not confirmed: ${unconfirmedUses}`] : []),
    ...nouns.filter((noun) => records[noun] > 0).map((noun) => `${recordNames[noun]}: ${records[noun]}`),
    ...replaced.map((path) => `database replaced by a restore: ${path}`),
  ];
}
