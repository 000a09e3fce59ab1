import { features } from '../features.ts';
import { type HelpSection, commandGroup as group, type HelpLine, helpLine, type Entry } from './command.ts';

/** The commands of the core, in the order of the manual. The commands of `latchkey outbox` are in `commands/outbox.ts`. */
const coreCommands: readonly Entry[] = [
  { name: 'serve', load: async () => (await import('./commands/serve.ts')).command },
  { name: 'stop', load: async () => (await import('./commands/daemon.ts')).stop },
  { name: 'reload', load: async () => (await import('./commands/daemon.ts')).reload },
  { name: 'status', load: async () => (await import('./commands/status.ts')).command },
  { name: 'verify', load: async () => (await import('./commands/use.ts')).verify },
  { name: 'use', load: async () => (await import('./commands/use.ts')).use },
  { name: 'unuse', load: async () => (await import('./commands/use.ts')).unuse },
  { name: 'enable', load: async () => (await import('./commands/use.ts')).enable },
  { name: 'disable', load: async () => (await import('./commands/use.ts')).disable },
  group('coupon', 'Create, change, list, quote and redeem coupons', () => import('./commands/coupon.ts')),
  group('account', 'Add and list accounts, rotate their API keys', () => import('./commands/account.ts')),
  group(
    'product',
    'Add, list and change products, rotate their secrets',
    () => import('./commands/product.ts'),
  ),
  group(
    'collection',
    'Add, list, show and change collections of products',
    () => import('./commands/collection.ts'),
  ),
  group('license', 'Issue and list license keys, show their changes', () => import('./commands/license.ts')),
  group('purchase', 'Find and refund purchases', () => import('./commands/purchase.ts')),
  group('token', 'Issue, list and revoke tokens', () => import('./commands/token.ts')),
  group('audit', 'See who did what', () => import('./commands/audit.ts')),
  group('outbox', 'Inspect and resolve changes waiting for the store', () => import('./commands/outbox.ts')),
  group('sync', 'Send now, pause or resume sending to the store', () => import('./commands/sync.ts')),
  { name: 'preload', load: async () => (await import('./commands/preload.ts')).command },
  { name: 'backup', load: async () => (await import('./commands/backup.ts')).backup },
  { name: 'restore', load: async () => (await import('./commands/backup.ts')).restore },
  group('state', 'Show what the state directory contains', () => import('./commands/state.ts')),
  { name: 'doctor', load: async () => (await import('./commands/doctor.ts')).command },
  { name: 'support', load: async () => (await import('./commands/support.ts')).command },
  { name: 'explain', load: async () => (await import('./commands/explain.ts')).command },
  group('config', 'Check and show the configuration', () => import('./commands/config.ts')),
  { name: 'help', load: async () => (await import('./commands/help.ts')).command },
  { name: 'version', load: async () => (await import('./commands/version.ts')).command },
];

export const commands: readonly Entry[] = [
  ...coreCommands.map(withCommandsOfFeatures),
  ...features.flatMap((feature) => feature.commands ?? []),
];

/** Features add commands to the groups of the core. */
function withCommandsOfFeatures(entry: Entry): Entry {
  const loads = features.flatMap(({ subcommands }) => subcommands?.[entry.name] ?? []);
  if (loads.length === 0) return entry;
  return {
    ...entry,
    load: async () => {
      const loaded = await entry.load();
      if (!('commands' in loaded)) throw new Error(`${entry.name} has no commands under it`);
      const added = await Promise.all(loads.map((load) => load()));
      return { ...loaded, commands: [loaded, ...added].flatMap(({ commands: own }) => own) };
    },
  };
}

/** `latchkey --help`: what people want to do, and the commands for that. Every command is on one line. */
export const helpSections: Readonly<Record<HelpSection, readonly HelpLine[]>> = {
  Run: [
    ...linesOfFeatures('Run'),
    line('config', 'Check and show the configuration'),
    line('serve reload stop', 'Run the daemon, reload its configuration, end it'),
  ],
  'Use license keys': [
    line('verify use unuse', 'Check a license key; record or undo a use'),
    line('enable disable', 'Enable or disable a license key'),
    ...linesOfFeatures('Use license keys'),
    line('preload', 'Fetch license keys in advance, to answer offline'),
  ],
  Sell: [
    line('product collection', 'Add and change products and collections'),
    line('license purchase', 'Issue license keys; find and refund purchases'),
    line('coupon', 'Create, quote and redeem coupons'),
    line('account token', 'Let programs in'),
    ...linesOfFeatures('Sell'),
  ],
  Lease: linesOfFeatures('Lease'),
  'Look after': [
    line('status doctor', 'Show the state; find problems'),
    line('outbox sync', 'Resolve changes waiting for the store; pause, resume'),
    line('audit', 'See who did what'),
    line('backup restore', 'Copy the state into a file, and restore it'),
    line('state', 'Show what the state has'),
    line('support', 'Write what others need to help, without secrets'),
    line('explain help version', 'Explain a code or a command; show the version'),
    ...linesOfFeatures('Look after'),
  ],
};

/** A line of the core, unless a feature puts another in its place. */
function line(names: string, describe: string): HelpLine {
  const [other = helpLine(names, describe)] = features.flatMap(
    ({ replacedHelp }) => replacedHelp?.[names] ?? [],
  );
  return other;
}

function linesOfFeatures(section: HelpSection): readonly HelpLine[] {
  return features.flatMap(({ help }) => help?.[section] ?? []);
}
