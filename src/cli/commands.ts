import type { CommandEntry, CommandGroup, Entry } from './command.ts';

/**
 * Every command, in the order of the help. The file of a command has the path of its words: `commands/outbox/retry.ts`.
 * `serve`, `stop` and `reload` are in `commands/daemon/`, `activate` and `deactivate` in `commands/lease/`.
 */
export const commands: readonly Entry[] = [
  { name: 'init', load: () => import('./commands/init.ts') },
  { name: 'serve', load: () => import('./commands/daemon/serve.ts') },
  { name: 'demo', load: () => import('./commands/demo.ts') },
  { name: 'sandbox', load: () => import('./commands/sandbox.ts') },
  { name: 'stop', load: () => import('./commands/daemon/stop.ts') },
  { name: 'reload', load: () => import('./commands/daemon/reload.ts') },
  { name: 'status', load: () => import('./commands/status.ts') },
  { name: 'console', load: () => import('./commands/console.ts') },
  { name: 'verify', load: () => import('./commands/verify.ts') },
  { name: 'use', load: () => import('./commands/use.ts') },
  { name: 'unuse', load: () => import('./commands/unuse.ts') },
  { name: 'activate', load: () => import('./commands/lease/activate.ts') },
  { name: 'deactivate', load: () => import('./commands/lease/deactivate.ts') },
  { name: 'enable', load: () => import('./commands/enable.ts') },
  { name: 'disable', load: () => import('./commands/disable.ts') },
  group('coupon', 'Create, change, list, quote and redeem coupons', {
    create: () => import('./commands/coupon/create.ts'),
    list: () => import('./commands/coupon/list.ts'),
    show: () => import('./commands/coupon/show.ts'),
    quote: () => import('./commands/coupon/quote.ts'),
    redeem: () => import('./commands/coupon/redeem.ts'),
    void: () => import('./commands/coupon/void.ts'),
    update: () => import('./commands/coupon/update.ts'),
    end: () => import('./commands/coupon/end.ts'),
    delete: () => import('./commands/coupon/delete.ts'),
    import: () => import('./commands/coupon/import.ts'),
    export: () => import('./commands/coupon/export.ts'),
  }),
  group('account', 'Add and list accounts, roll their API keys', {
    add: () => import('./commands/account/add.ts'),
    roll: () => import('./commands/account/roll.ts'),
    list: () => import('./commands/account/list.ts'),
  }),
  group('product', 'Add, list and change products, roll their secrets', {
    add: () => import('./commands/product/add.ts'),
    list: () => import('./commands/product/list.ts'),
    show: () => import('./commands/product/show.ts'),
    update: () => import('./commands/product/update.ts'),
    archive: () => import('./commands/product/archive.ts'),
    unarchive: () => import('./commands/product/unarchive.ts'),
    roll: () => import('./commands/product/roll.ts'),
  }),
  group('collection', 'Add, list, show and change collections of products', {
    list: () => import('./commands/collection/list.ts'),
    show: () => import('./commands/collection/show.ts'),
    update: () => import('./commands/collection/update.ts'),
    add: () => import('./commands/collection/add.ts'),
  }),
  group('license', 'Issue and list license keys, show their changes', {
    issue: () => import('./commands/license/issue.ts'),
    list: () => import('./commands/license/list.ts'),
    show: () => import('./commands/license/show.ts'),
    history: () => import('./commands/license/history.ts'),
    import: () => import('./commands/license/import.ts'),
    export: () => import('./commands/license/export.ts'),
  }),
  group('purchase', 'Find and refund purchases', {
    list: () => import('./commands/purchase/list.ts'),
    show: () => import('./commands/purchase/show.ts'),
    refund: () => import('./commands/purchase/refund.ts'),
    import: () => import('./commands/purchase/import.ts'),
    export: () => import('./commands/purchase/export.ts'),
  }),
  group('token', 'Issue, list and revoke tokens', {
    issue: () => import('./commands/token/issue.ts'),
    list: () => import('./commands/token/list.ts'),
    revoke: () => import('./commands/token/revoke.ts'),
  }),
  group('webhook', 'Send events to other systems', {
    add: () => import('./commands/webhook/add.ts'),
    list: () => import('./commands/webhook/list.ts'),
    show: () => import('./commands/webhook/show.ts'),
    test: () => import('./commands/webhook/test.ts'),
    deliveries: () => import('./commands/webhook/deliveries.ts'),
    replay: () => import('./commands/webhook/replay.ts'),
    rotate: () => import('./commands/webhook/rotate.ts'),
    resume: () => import('./commands/webhook/resume.ts'),
    remove: () => import('./commands/webhook/remove.ts'),
  }),
  group('agent', 'List and forget the agents that send changes to an authority', {
    list: () => import('./commands/agent/list.ts'),
    forget: () => import('./commands/agent/forget.ts'),
  }),
  group('audit', 'See who did what', {
    list: () => import('./commands/audit/list.ts'),
    show: () => import('./commands/audit/show.ts'),
  }),
  group('outbox', 'Inspect and resolve changes waiting for the store', {
    list: () => import('./commands/outbox/list.ts'),
    show: () => import('./commands/outbox/show.ts'),
    retry: () => import('./commands/outbox/retry.ts'),
    drop: () => import('./commands/outbox/drop.ts'),
    confirm: () => import('./commands/outbox/confirm.ts'),
    decide: () => import('./commands/outbox/decide.ts'),
  }),
  group('sync', 'Send now, pause or resume sending to the store', {
    now: () => import('./commands/sync/now.ts'),
    pause: () => import('./commands/sync/pause.ts'),
    resume: () => import('./commands/sync/resume.ts'),
  }),
  group(
    'lease',
    'Set up leases, sign and install them and key statements',
    {
      setup: () => import('./commands/lease/setup.ts'),
      request: () => import('./commands/lease/request.ts'),
      sign: () => import('./commands/lease/sign.ts'),
      install: () => import('./commands/lease/install.ts'),
      list: () => import('./commands/lease/list.ts'),
    },
    [
      group('statement', 'Sign, install and show key statements', {
        sign: () => import('./commands/lease/statement/sign.ts'),
        install: () => import('./commands/lease/statement/install.ts'),
        show: () => import('./commands/lease/statement/show.ts'),
      }),
    ],
  ),
  group(
    'activation',
    'List, end and block devices that have asked for seats, and move them to another issuer',
    {
      list: () => import('./commands/activation/list.ts'),
      show: () => import('./commands/activation/show.ts'),
      end: () => import('./commands/activation/end.ts'),
      block: () => import('./commands/activation/block.ts'),
      export: () => import('./commands/activation/export.ts'),
      import: () => import('./commands/activation/import.ts'),
    },
  ),
  group('signing-key', 'Add, list and retire the keys that sign leases', {
    add: () => import('./commands/signing-key/add.ts'),
    list: () => import('./commands/signing-key/list.ts'),
    retire: () => import('./commands/signing-key/retire.ts'),
  }),
  { name: 'preload', load: () => import('./commands/preload.ts') },
  { name: 'backup', load: () => import('./commands/backup.ts') },
  { name: 'restore', load: () => import('./commands/restore.ts') },
  group('store', 'Move an authority to a database', {
    move: () => import('./commands/store/move.ts'),
  }),
  group('state', 'Show what the state directory contains', {
    show: () => import('./commands/state/show.ts'),
  }),
  { name: 'doctor', load: () => import('./commands/doctor.ts') },
  { name: 'explain', load: () => import('./commands/explain.ts') },
  group('service', 'Run the daemon as a service of the system', {
    print: () => import('./commands/service/print.ts'),
    install: () => import('./commands/service/install.ts'),
    uninstall: () => import('./commands/service/uninstall.ts'),
  }),
  group('certificate', 'Create a certificate for listen.tls', {
    make: () => import('./commands/certificate/make.ts'),
  }),
  group('config', 'Check and show the configuration', {
    check: () => import('./commands/config/check.ts'),
    show: () => import('./commands/config/show.ts'),
  }),
  group('completion', 'Let the shell complete commands', {
    bash: () => import('./commands/completion/bash.ts'),
    zsh: () => import('./commands/completion/zsh.ts'),
    fish: () => import('./commands/completion/fish.ts'),
    powershell: () => import('./commands/completion/powershell.ts'),
    next: () => import('./commands/completion/next.ts'),
  }),
  { name: 'man', load: () => import('./commands/man.ts') },
  { name: 'help', load: () => import('./commands/help.ts') },
  { name: 'version', load: () => import('./commands/version.ts') },
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
    line('lease signing-key', 'Set up and sign leases; the keys that sign them'),
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

function group(
  name: string,
  describe: string,
  modules: Readonly<Record<string, CommandEntry['load']>>,
  groups: readonly CommandGroup[] = [],
): CommandGroup {
  const entries = Object.entries(modules).map(([each, load]) => ({ name: each, load }));
  return { name, describe, commands: [...entries, ...groups] };
}
