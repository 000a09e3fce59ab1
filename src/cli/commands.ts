import type { Entry } from './command.ts';

/** Every command, in the order of the help. The file of a command has the path of its words: `commands/outbox/retry.ts`. */
export const commands: readonly Entry[] = [
  { name: 'init', load: () => import('./commands/init.ts') },
  { name: 'serve', load: () => import('./commands/serve.ts') },
  { name: 'demo', load: () => import('./commands/demo.ts') },
  { name: 'sandbox', load: () => import('./commands/sandbox.ts') },
  { name: 'status', load: () => import('./commands/status.ts') },
  { name: 'verify', load: () => import('./commands/verify.ts') },
  { name: 'use', load: () => import('./commands/use.ts') },
  { name: 'unuse', load: () => import('./commands/unuse.ts') },
  { name: 'enable', load: () => import('./commands/enable.ts') },
  { name: 'disable', load: () => import('./commands/disable.ts') },
  {
    name: 'coupon',
    describe: 'Create, change, list, quote and redeem coupons',
    commands: [
      { name: 'create', load: () => import('./commands/coupon/create.ts') },
      { name: 'list', load: () => import('./commands/coupon/list.ts') },
      { name: 'show', load: () => import('./commands/coupon/show.ts') },
      { name: 'quote', load: () => import('./commands/coupon/quote.ts') },
      { name: 'redeem', load: () => import('./commands/coupon/redeem.ts') },
      { name: 'void', load: () => import('./commands/coupon/void.ts') },
      { name: 'update', load: () => import('./commands/coupon/update.ts') },
      { name: 'end', load: () => import('./commands/coupon/end.ts') },
      { name: 'delete', load: () => import('./commands/coupon/delete.ts') },
      { name: 'import', load: () => import('./commands/coupon/import.ts') },
      { name: 'export', load: () => import('./commands/coupon/export.ts') },
    ],
  },
  {
    name: 'account',
    describe: 'Add and list accounts, roll their API keys',
    commands: [
      { name: 'add', load: () => import('./commands/account/add.ts') },
      { name: 'roll', load: () => import('./commands/account/roll.ts') },
      { name: 'list', load: () => import('./commands/account/list.ts') },
    ],
  },
  {
    name: 'product',
    describe: 'Add, list and change products, roll their secrets',
    commands: [
      { name: 'add', load: () => import('./commands/product/add.ts') },
      { name: 'list', load: () => import('./commands/product/list.ts') },
      { name: 'show', load: () => import('./commands/product/show.ts') },
      { name: 'update', load: () => import('./commands/product/update.ts') },
      { name: 'archive', load: () => import('./commands/product/archive.ts') },
      { name: 'unarchive', load: () => import('./commands/product/unarchive.ts') },
      { name: 'roll', load: () => import('./commands/product/roll.ts') },
    ],
  },
  {
    name: 'collection',
    describe: 'Add, list, show and change collections of products',
    commands: [
      { name: 'list', load: () => import('./commands/collection/list.ts') },
      { name: 'show', load: () => import('./commands/collection/show.ts') },
      { name: 'update', load: () => import('./commands/collection/update.ts') },
      { name: 'add', load: () => import('./commands/collection/add.ts') },
    ],
  },
  {
    name: 'license',
    describe: 'Issue and list license keys, show their changes',
    commands: [
      { name: 'issue', load: () => import('./commands/license/issue.ts') },
      { name: 'list', load: () => import('./commands/license/list.ts') },
      { name: 'show', load: () => import('./commands/license/show.ts') },
      { name: 'history', load: () => import('./commands/license/history.ts') },
      { name: 'import', load: () => import('./commands/license/import.ts') },
      { name: 'export', load: () => import('./commands/license/export.ts') },
    ],
  },
  {
    name: 'purchase',
    describe: 'Find and refund purchases',
    commands: [
      { name: 'list', load: () => import('./commands/purchase/list.ts') },
      { name: 'show', load: () => import('./commands/purchase/show.ts') },
      { name: 'refund', load: () => import('./commands/purchase/refund.ts') },
      { name: 'import', load: () => import('./commands/purchase/import.ts') },
      { name: 'export', load: () => import('./commands/purchase/export.ts') },
    ],
  },
  {
    name: 'token',
    describe: 'Issue, list and revoke tokens',
    commands: [
      { name: 'issue', load: () => import('./commands/token/issue.ts') },
      { name: 'list', load: () => import('./commands/token/list.ts') },
      { name: 'revoke', load: () => import('./commands/token/revoke.ts') },
    ],
  },
  {
    name: 'audit',
    describe: 'See who did what',
    commands: [
      { name: 'list', load: () => import('./commands/audit/list.ts') },
      { name: 'show', load: () => import('./commands/audit/show.ts') },
    ],
  },
  {
    name: 'outbox',
    describe: 'Inspect and resolve changes waiting for the store',
    commands: [
      { name: 'list', load: () => import('./commands/outbox/list.ts') },
      { name: 'show', load: () => import('./commands/outbox/show.ts') },
      { name: 'retry', load: () => import('./commands/outbox/retry.ts') },
      { name: 'drop', load: () => import('./commands/outbox/drop.ts') },
      { name: 'confirm', load: () => import('./commands/outbox/confirm.ts') },
    ],
  },
  {
    name: 'sync',
    describe: 'Send now, pause or resume sending to the store',
    commands: [
      { name: 'now', load: () => import('./commands/sync/now.ts') },
      { name: 'pause', load: () => import('./commands/sync/pause.ts') },
      { name: 'resume', load: () => import('./commands/sync/resume.ts') },
    ],
  },
  { name: 'preload', load: () => import('./commands/preload.ts') },
  { name: 'backup', load: () => import('./commands/backup.ts') },
  { name: 'restore', load: () => import('./commands/restore.ts') },
  {
    name: 'store',
    describe: 'Move an authority to a database',
    commands: [{ name: 'move', load: () => import('./commands/store/move.ts') }],
  },
  {
    name: 'state',
    describe: 'Show what the state directory contains',
    commands: [{ name: 'show', load: () => import('./commands/state/show.ts') }],
  },
  { name: 'doctor', load: () => import('./commands/doctor.ts') },
  { name: 'explain', load: () => import('./commands/explain.ts') },
  {
    name: 'service',
    describe: 'Run the daemon under systemd',
    commands: [
      { name: 'print', load: () => import('./commands/service/print.ts') },
      { name: 'install', load: () => import('./commands/service/install.ts') },
      { name: 'uninstall', load: () => import('./commands/service/uninstall.ts') },
    ],
  },
  {
    name: 'certificate',
    describe: 'Create a certificate for listen.tls',
    commands: [{ name: 'make', load: () => import('./commands/certificate/make.ts') }],
  },
  {
    name: 'config',
    describe: 'Check and show the configuration',
    commands: [
      { name: 'check', load: () => import('./commands/config/check.ts') },
      { name: 'show', load: () => import('./commands/config/show.ts') },
    ],
  },
  {
    name: 'completion',
    describe: 'Let the shell complete commands',
    commands: [
      { name: 'bash', load: () => import('./commands/completion/bash.ts') },
      { name: 'zsh', load: () => import('./commands/completion/zsh.ts') },
      { name: 'fish', load: () => import('./commands/completion/fish.ts') },
      { name: 'next', load: () => import('./commands/completion/next.ts') },
    ],
  },
  { name: 'man', load: () => import('./commands/man.ts') },
  { name: 'help', load: () => import('./commands/help.ts') },
  { name: 'version', load: () => import('./commands/version.ts') },
];
