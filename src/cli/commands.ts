import type { CommandEntry } from './command.ts';
import { addAccount } from './commands/account/add.ts';
import { listAccounts } from './commands/account/list.ts';
import { rollApiKey } from './commands/account/roll.ts';
import { listAudit } from './commands/audit/list.ts';
import { showAct } from './commands/audit/show.ts';
import { backupCommand } from './commands/backup.ts';
import { makeCertificateCommand } from './commands/certificate/make.ts';
import { addCollection } from './commands/collection/add.ts';
import { listCollections } from './commands/collection/list.ts';
import { showCollection } from './commands/collection/show.ts';
import { updateCollection } from './commands/collection/update.ts';
import { bashCompletion } from './commands/completion/bash.ts';
import { fishCompletion } from './commands/completion/fish.ts';
import { nextCommand } from './commands/completion/next.ts';
import { zshCompletion } from './commands/completion/zsh.ts';
import { checkConfig } from './commands/config/check.ts';
import { showConfig } from './commands/config/show.ts';
import { createCoupon } from './commands/coupon/create.ts';
import { deleteCoupon } from './commands/coupon/delete.ts';
import { endCoupon } from './commands/coupon/end.ts';
import { exportCoupons } from './commands/coupon/export.ts';
import { importCoupons } from './commands/coupon/import.ts';
import { listCoupons } from './commands/coupon/list.ts';
import { quoteCoupon } from './commands/coupon/quote.ts';
import { redeemCoupon } from './commands/coupon/redeem.ts';
import { showCoupon } from './commands/coupon/show.ts';
import { updateCoupon } from './commands/coupon/update.ts';
import { voidRedemption } from './commands/coupon/void.ts';
import { demoCommand } from './commands/demo.ts';
import { disableCommand } from './commands/disable.ts';
import { doctorCommand } from './commands/doctor.ts';
import { enableCommand } from './commands/enable.ts';
import { explainCommand } from './commands/explain.ts';
import { helpCommand } from './commands/help.ts';
import { initCommand } from './commands/init.ts';
import { exportLicenses } from './commands/license/export.ts';
import { licenseHistory } from './commands/license/history.ts';
import { importLicenses } from './commands/license/import.ts';
import { issueLicense } from './commands/license/issue.ts';
import { listLicenses } from './commands/license/list.ts';
import { showLicense } from './commands/license/show.ts';
import { manCommand } from './commands/man.ts';
import { confirmOperation } from './commands/outbox/confirm.ts';
import { dropOperation } from './commands/outbox/drop.ts';
import { listOutbox } from './commands/outbox/list.ts';
import { retryOperation } from './commands/outbox/retry.ts';
import { showOperation } from './commands/outbox/show.ts';
import { preloadCommand } from './commands/preload.ts';
import { addProduct } from './commands/product/add.ts';
import { archiveProduct } from './commands/product/archive.ts';
import { listProducts } from './commands/product/list.ts';
import { rollSecret } from './commands/product/roll.ts';
import { showProduct } from './commands/product/show.ts';
import { unarchiveProduct } from './commands/product/unarchive.ts';
import { updateProduct } from './commands/product/update.ts';
import { exportPurchases } from './commands/purchase/export.ts';
import { importPurchases } from './commands/purchase/import.ts';
import { listPurchases } from './commands/purchase/list.ts';
import { refundPurchase } from './commands/purchase/refund.ts';
import { showPurchase } from './commands/purchase/show.ts';
import { restoreCommand } from './commands/restore.ts';
import { sandboxCommand } from './commands/sandbox.ts';
import { serveCommand } from './commands/serve.ts';
import { installUnit } from './commands/service/install.ts';
import { printUnit } from './commands/service/print.ts';
import { uninstallUnit } from './commands/service/uninstall.ts';
import { showState } from './commands/state/show.ts';
import { statusCommand } from './commands/status.ts';
import { moveStore } from './commands/store/move.ts';
import { syncNow } from './commands/sync/now.ts';
import { pauseSync } from './commands/sync/pause.ts';
import { resumeSync } from './commands/sync/resume.ts';
import { issueToken } from './commands/token/issue.ts';
import { listTokens } from './commands/token/list.ts';
import { revokeToken } from './commands/token/revoke.ts';
import { unuseCommand } from './commands/unuse.ts';
import { useCommand } from './commands/use.ts';
import { verifyCommand } from './commands/verify.ts';
import { versionCommand } from './commands/version.ts';

/** Every command, in the order of the help. The file of a command has the path of its words: `commands/outbox/retry.ts`. */
export const commands: readonly CommandEntry[] = [
  initCommand,
  serveCommand,
  demoCommand,
  sandboxCommand,
  statusCommand,
  verifyCommand,
  useCommand,
  unuseCommand,
  enableCommand,
  disableCommand,
  {
    command: 'coupon',
    describe: 'Create, change, list, quote and redeem coupons',
    commands: [
      createCoupon,
      listCoupons,
      showCoupon,
      quoteCoupon,
      redeemCoupon,
      voidRedemption,
      updateCoupon,
      endCoupon,
      deleteCoupon,
      importCoupons,
      exportCoupons,
    ],
  },
  {
    command: 'account',
    describe: 'Add and list accounts, roll their API keys',
    commands: [addAccount, rollApiKey, listAccounts],
  },
  {
    command: 'product',
    describe: 'Add, list and change products, roll their secrets',
    commands: [
      addProduct,
      listProducts,
      showProduct,
      updateProduct,
      archiveProduct,
      unarchiveProduct,
      rollSecret,
    ],
  },
  {
    command: 'collection',
    describe: 'Add, list, show and change collections of products',
    commands: [listCollections, showCollection, updateCollection, addCollection],
  },
  {
    command: 'license',
    describe: 'Issue and list license keys, show their changes',
    commands: [issueLicense, listLicenses, showLicense, licenseHistory, importLicenses, exportLicenses],
  },
  {
    command: 'purchase',
    describe: 'Find and refund purchases',
    commands: [listPurchases, showPurchase, refundPurchase, importPurchases, exportPurchases],
  },
  {
    command: 'token',
    describe: 'Issue, list and revoke tokens',
    commands: [issueToken, listTokens, revokeToken],
  },
  {
    command: 'audit',
    describe: 'See who did what',
    commands: [listAudit, showAct],
  },
  {
    command: 'outbox',
    describe: 'Inspect and resolve changes waiting for the store',
    commands: [listOutbox, showOperation, retryOperation, dropOperation, confirmOperation],
  },
  {
    command: 'sync',
    describe: 'Send now, pause or resume sending to the store',
    commands: [syncNow, pauseSync, resumeSync],
  },
  preloadCommand,
  backupCommand,
  restoreCommand,
  {
    command: 'store',
    describe: 'Move an authority to a database',
    commands: [moveStore],
  },
  {
    command: 'state',
    describe: 'Show what the state directory contains',
    commands: [showState],
  },
  doctorCommand,
  explainCommand,
  {
    command: 'service',
    describe: 'Run the daemon under systemd',
    commands: [printUnit, installUnit, uninstallUnit],
  },
  {
    command: 'certificate',
    describe: 'Create a certificate for listen.tls',
    commands: [makeCertificateCommand],
  },
  {
    command: 'config',
    describe: 'Check and show the configuration',
    commands: [checkConfig, showConfig],
  },
  {
    command: 'completion',
    describe: 'Let the shell complete commands',
    commands: [bashCompletion, zshCompletion, fishCompletion, nextCommand(() => commands)],
  },
  manCommand(() => commands),
  helpCommand(() => commands),
  versionCommand,
];
