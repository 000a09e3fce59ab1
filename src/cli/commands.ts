import type { Entry, Group } from './command.ts';

/** Every command, in the order of the help. The commands of `latchkey outbox` are in `commands/outbox.ts`. */
export const commands: readonly Entry[] = [
  { name: 'init', load: async () => (await import('./commands/init.ts')).command },
  { name: 'serve', load: async () => (await import('./commands/serve.ts')).command },
  { name: 'demo', load: async () => (await import('./commands/sandbox.ts')).demo },
  { name: 'sandbox', load: async () => (await import('./commands/sandbox.ts')).sandbox },
  { name: 'stop', load: async () => (await import('./commands/daemon.ts')).stop },
  { name: 'reload', load: async () => (await import('./commands/daemon.ts')).reload },
  { name: 'status', load: async () => (await import('./commands/status.ts')).command },
  { name: 'console', load: async () => (await import('./commands/console.ts')).command },
  { name: 'verify', load: async () => (await import('./commands/use.ts')).verify },
  { name: 'use', load: async () => (await import('./commands/use.ts')).use },
  { name: 'unuse', load: async () => (await import('./commands/use.ts')).unuse },
  { name: 'activate', load: async () => (await import('./commands/lease.ts')).activate },
  { name: 'deactivate', load: async () => (await import('./commands/lease.ts')).deactivate },
  { name: 'enable', load: async () => (await import('./commands/use.ts')).enable },
  { name: 'disable', load: async () => (await import('./commands/use.ts')).disable },
  group('coupon', 'Create, change, list, quote and redeem coupons', () => import('./commands/coupon.ts')),
  group('account', 'Add and list accounts, roll their API keys', () => import('./commands/account.ts')),
  group(
    'product',
    'Add, list and change products, roll their secrets',
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
  group('webhook', 'Send events to other systems', () => import('./commands/webhook.ts')),
  group(
    'agent',
    'List and forget the agents that send changes to an authority',
    () => import('./commands/agent.ts'),
  ),
  group('audit', 'See who did what', () => import('./commands/audit.ts')),
  group('outbox', 'Inspect and resolve changes waiting for the store', () => import('./commands/outbox.ts')),
  group('sync', 'Send now, pause or resume sending to the store', () => import('./commands/sync.ts')),
  group(
    'lease',
    'Set up leases, sign and install them, rotate the keys that sign them',
    () => import('./commands/lease.ts'),
  ),
  group(
    'activation',
    'List, end and block devices that have asked for seats',
    () => import('./commands/activation.ts'),
  ),
  { name: 'preload', load: async () => (await import('./commands/preload.ts')).command },
  { name: 'backup', load: async () => (await import('./commands/backup.ts')).backup },
  { name: 'restore', load: async () => (await import('./commands/backup.ts')).restore },
  group('store', 'Move an authority to a database', () => import('./commands/store.ts')),
  group('state', 'Show what the state directory contains', () => import('./commands/state.ts')),
  { name: 'doctor', load: async () => (await import('./commands/doctor.ts')).command },
  { name: 'explain', load: async () => (await import('./commands/explain.ts')).command },
  group('service', 'Run the daemon as a service of the system', () => import('./commands/service.ts')),
  group('certificate', 'Create a certificate for listen.tls', () => import('./commands/certificate.ts')),
  group('config', 'Check and show the configuration', () => import('./commands/config.ts')),
  group('completion', 'Let the shell complete commands', () => import('./commands/completion.ts')),
  { name: 'man', load: async () => (await import('./commands/man.ts')).command },
  { name: 'help', load: async () => (await import('./commands/help.ts')).command },
  { name: 'version', load: async () => (await import('./commands/version.ts')).command },
];

/** Commands that belong together, on one line of `latchkey --help`. */
export interface CommandLine {
  readonly names: readonly string[];
  readonly describe: string;
}

/** `latchkey --help`: what people want to do, and the commands for that. Every command is on one line. */
export const commandAreas: Readonly<Record<string, readonly CommandLine[]>> = {
  Run: [
    line('demo sandbox', 'See what it does; run a temporary store to try it'),
    line('init config', 'Create a configuration step by step; check it'),
    line('serve reload stop', 'Run the daemon, reload its configuration, end it'),
    line('service certificate', 'Run it as a system service; make a certificate'),
  ],
  'Use license keys': [
    line('verify use unuse', 'Check a license key; record or undo a use'),
    line('enable disable', 'Enable or disable a license key'),
    line('activate deactivate', 'Take a seat for this device, or give it back'),
    line('preload', 'Fetch license keys in advance, to answer offline'),
  ],
  Sell: [
    line('product collection', 'Add and change products and collections'),
    line('license purchase', 'Issue license keys; find and refund purchases'),
    line('coupon', 'Create, quote and redeem coupons'),
    line('account token webhook', 'Let programs in; send events to other systems'),
  ],
  Lease: [
    line('lease', 'Set up and sign leases; rotate the signing keys'),
    line('activation', 'List, end and block the devices that have seats'),
  ],
  'Look after': [
    line('status console doctor', 'Show the state, also in a browser; find problems'),
    line('outbox sync', 'Resolve changes waiting for the store; pause, resume'),
    line('agent audit', 'List the agents of an authority; see who did what'),
    line('backup restore', 'Copy the state into a file, and restore it'),
    line('state store', 'Show what the state has; move it to a database'),
    line('explain help man', 'Explain a code or a command; the manual page'),
    line('version completion', 'Show the version; complete commands in the shell'),
  ],
};

function line(names: string, describe: string): CommandLine {
  return { names: names.split(' '), describe };
}

function group(name: string, describe: string, load: () => Promise<Pick<Group, 'commands'>>): Entry {
  return {
    name,
    describe,
    load: async () => ({ command: name, describe, commands: (await load()).commands }),
  };
}
