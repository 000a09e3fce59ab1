import type { CommandEntry } from './command.ts';

/** Every command of the program, in the order of its help. */
export const commands: readonly CommandEntry[] = [
  {
    usage: 'serve',
    summary: 'Run the daemon',
    load: async () => (await import('./local/serve.ts')).serveCommand,
  },
  {
    usage: 'demo',
    summary: 'Show the main job, end to end, in a few seconds',
    load: async () => (await import('./local/demo.ts')).demoCommand,
  },
  {
    usage: 'sandbox',
    summary: 'Run a small authority to try things on',
    load: async () => (await import('./local/sandbox.ts')).sandboxCommand,
  },
  {
    usage: 'status',
    summary: 'Show how the daemon is',
    load: async () => (await import('./commands/status.ts')).statusCommand,
  },
  {
    usage: 'verify <key>',
    summary: 'Ask whether a license key is valid',
    load: async () => (await import('./commands/verify.ts')).verifyCommand,
  },
  {
    usage: 'use <key>',
    summary: 'Record one use of a license key',
    load: async () => (await import('./commands/license-change.ts')).useCommand,
  },
  {
    usage: 'unuse <key>',
    summary: 'Take one use of a license key back',
    load: async () => (await import('./commands/license-change.ts')).unuseCommand,
  },
  {
    usage: 'enable <key>',
    summary: 'Enable a license key',
    load: async () => (await import('./commands/license-change.ts')).enableCommand,
  },
  {
    usage: 'disable <key>',
    summary: 'Disable a license key',
    load: async () => (await import('./commands/license-change.ts')).disableCommand,
  },
  {
    usage: 'coupon',
    summary: 'Create, list and show coupons',
    load: async () => (await import('./commands/coupon.ts')).couponCommands,
  },
  {
    usage: 'account',
    summary: 'Add and list accounts, roll their API keys',
    load: async () => (await import('./commands/account.ts')).accountCommands,
  },
  {
    usage: 'product',
    summary: 'Add and list products, roll their secrets',
    load: async () => (await import('./commands/product.ts')).productCommands,
  },
  {
    usage: 'collection',
    summary: 'Add collections of products',
    load: async () => (await import('./commands/collection.ts')).collectionCommands,
  },
  {
    usage: 'license',
    summary: 'Issue and list license keys',
    load: async () => (await import('./commands/license.ts')).licenseCommands,
  },
  {
    usage: 'purchase',
    summary: 'Refund purchases',
    load: async () => (await import('./commands/purchase.ts')).purchaseCommands,
  },
  {
    usage: 'token',
    summary: 'Issue, list and revoke tokens',
    load: async () => (await import('./commands/token.ts')).tokenCommands,
  },
  {
    usage: 'outbox',
    summary: 'See the changes on their way up, and decide on them',
    load: async () => (await import('./commands/outbox.ts')).outboxCommands,
  },
  {
    usage: 'sync',
    summary: 'Hurry, pause and resume what goes to the upstream',
    load: async () => (await import('./commands/sync.ts')).syncCommands,
  },
  {
    usage: 'backup <file>',
    summary: 'Copy the state of the running daemon into a new file',
    load: async () => (await import('./commands/backup.ts')).backupCommand,
  },
  {
    usage: 'restore <file>',
    summary: 'Put a backup back, while no daemon runs',
    load: async () => (await import('./local/restore.ts')).restoreCommand,
  },
  {
    usage: 'doctor',
    summary: 'Find what is wrong, and say what to do',
    load: async () => (await import('./local/doctor.ts')).doctorCommand,
  },
  {
    usage: 'service',
    summary: 'Run the daemon by systemd',
    load: async () => (await import('./local/service.ts')).serviceCommands,
  },
  {
    usage: 'config',
    summary: 'Check and show the configuration',
    load: async () => (await import('./local/config.ts')).configCommands,
  },
  {
    usage: 'completion',
    summary: 'Let the shell complete commands',
    load: async () => (await import('./local/completion.ts')).completionCommands(commands),
  },
];
