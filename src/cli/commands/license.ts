import type { z } from 'zod';
import { provenanceHeaderNames } from '../../domain/header-names.ts';
import { features } from '../../features.ts';
import {
  changeList,
  type ChangeObject,
  changeObject,
  licenseList,
  type ListedLicenseObject,
  listedLicenseObject,
  type SoldLicenseObject,
} from '../../wire/license.ts';
import { productObject } from '../../wire/catalogue.ts';
import type { Call } from '../client/call.ts';
import {
  answeredAt,
  dataOrNull,
  defineList,
  defineRequest,
  pathOf,
  request,
  requestAndShow,
  type Result,
} from '../client/request.ts';
import {
  CommandError,
  defineCommand,
  type GlobalOptions,
  type LicensePart,
  type ReadLicensePart,
  textOption,
  UsageError,
} from '../command.ts';
import { type Cell, formatFields, formatTable, instant, type Shown, whole } from '../format.ts';
import type { Output } from '../output.ts';
import { licenseKeyPositional, readInstant, readLicenseKey } from '../values.ts';
import { readTerms, stateWord, termsOptions } from './license-terms.ts';
import { licenseFields, licensesPath, licenseView } from './license-view.ts';
import { purchasesPath, purchaseView } from './purchase.ts';

const soldProduct = productObject.pick({ name: true, seats: true });

type Sold = z.infer<typeof soldProduct>;

const shownChanges = 5;

export const commands = [
  defineRequest({
    command: 'issue',
    describe: 'Record a purchase and issue its license key',
    builder: {
      product: { ...textOption('Product key', 'product'), demandOption: true },
      email: { ...textOption('E-mail address of the buyer'), demandOption: true },
      key: textOption('License key; default: a new one'),
      date: textOption(
        'When it was sold: a datetime, a date (its start, UTC), or how long ago; default: now',
      ),
      uses: { type: 'number', describe: 'Uses so far' },
      enabled: { choices: ['true', 'false'], describe: 'Whether the key is valid' },
      ...termsOptions,
    },
    examples: [
      ['latchkey license issue --product RGsF --email buyer@example.com', 'records a purchase'],
      [
        'latchkey license issue --product RGsF --email buyer@example.com --expires 1y --entitlement pro',
        'valid for a year, with what your software calls pro',
      ],
    ],
    request: ({ product, email, key, date, uses, enabled, ...terms }) => ({
      method: 'POST',
      path: purchasesPath,
      json: {
        product_key: product,
        buyer_email: email,
        license_key: key,
        date: readInstant('date', date, 'before'),
        uses,
        enabled,
        ...readTerms(terms),
      },
    }),
    view: purchaseView,
  }),
  defineCommand({
    command: 'update <key..>',
    describe: 'Change the end of a license, what it unlocks, and its other terms',
    builder: { key: licenseKeyPositional, ...termsOptions },
    examples: [
      [
        'latchkey license update ABCDE-FGHJK-LMNPQ-RSTUV --expires 2030-12-31',
        'valid until the end of that day',
      ],
    ],
    handler: async (args, output) => {
      const json = readTerms(args);
      if (Object.keys(json).length === 0) {
        const options = Object.keys(termsOptions).map((option) => `--${option}`);
        throw new UsageError(`Give something to change: ${options.join(', ')}`);
      }
      const path = pathOf(licensesPath, readLicenseKey(args.key));
      return await requestAndShow(args, output, { method: 'PUT', path, json }, licenseView);
    },
  }),
  defineRequest({
    command: 'renew <key..>',
    describe: 'Move the end of a license: from its end if that is in the future, else from now',
    builder: {
      key: licenseKeyPositional,
      for: { ...textOption('How long: 30d, 2w, 6mo or 1y'), demandOption: true },
    },
    examples: [['latchkey license renew ABCDE-FGHJK-LMNPQ-RSTUV --for 1y', 'one more year']],
    request: ({ key, for: span }) => ({
      method: 'POST',
      path: `${pathOf(licensesPath, readLicenseKey(key))}/renew`,
      json: { for: span },
    }),
    view: licenseView,
  }),
  defineList({
    command: 'list',
    describe: 'List licenses',
    builder: {
      product: textOption('Only of this product', 'product'),
      account: textOption('Only of this account', 'account'),
      email: textOption('Only of this buyer, in any letter case'),
      enabled: { choices: ['true', 'false'], describe: 'Only valid keys, or only disabled keys' },
      search: textOption(
        'Only those with this text in the key or in the e-mail address, from three characters on',
      ),
    },
    examples: [
      ['latchkey license list --product RGsF --enabled false', 'the disabled keys of a product'],
      ['latchkey license list --search RSTUV', 'the license whose key ends so, of a page that shows no more'],
    ],
    epilogue: 'An agent lists the licenses that it has stored.',
    list: {
      path: licensesPath,
      member: 'licenses',
      item: listedLicenseObject,
      row: (listed) => ({
        'license key': whole(listed.license_key),
        state: stateOf(listed),
        uses: listed.uses,
        product: listed.product_link,
        buyer: listed.buyer_email,
        created: instant(listed.date),
        ...(listed.expires_at !== undefined && { 'valid until': instant(listed.expires_at) }),
        ...(listed.entitlements !== undefined && { entitlements: listed.entitlements.join(', ') }),
        ...(listed.freshness !== null && { freshness: listed.freshness }),
      }),
    },
    query: ({ product, account, enabled, email, search }) => ({
      product_key: product,
      account_id: account,
      enabled,
      buyer_email: email,
      search,
    }),
  }),
  defineCommand({
    command: 'show <key..>',
    describe: 'Show everything known about a license key',
    builder: { key: licenseKeyPositional },
    examples: [['latchkey license show ABCDE-FGHJK-LMNPQ-RSTUV', 'with its purchase and last changes']],
    epilogue: 'An agent knows no purchases or products. It shows the answer that software gets from it.',
    handler: async (args, output) => {
      const key = readLicenseKey(args.key);
      const found = await findLicense(args, key);
      const license = found?.data.licenses[0];
      // An authority does not list an unknown key, which verify reports with the usual error. Verify also asks the upstream.
      const isOfAgent = (license?.freshness ?? null) !== null;
      if (found === null || license === undefined || isOfAgent) {
        const missingSince = license?.missing_since ?? null;
        const verify = { path: '/api/v2/license/verify', query: { license_key: key } };
        return missingSince === null
          ? await requestAndShow(args, output, verify, licenseView)
          : await showMissing(args, output, verify, missingSince);
      }
      const sold = await productOf(args, license.product_link);
      const history = await lastChanges(args, license.license_key);
      const seats = license.seats ?? sold?.seats ?? null;
      const parts = await partsOfFeatures(args, license.license_key, seats);
      const ofFeatures = Object.assign({}, ...parts.map(({ json }) => json)) as object;
      return await output.result(
        { license, product_name: sold?.name ?? null, seats, ...ofFeatures, changes: history },
        formatLicense(license, sold, { history, parts }),
        answeredAt(found.answer),
      );
    },
  }),
  defineList({
    command: 'history <key..>',
    describe: 'List the changes of a license key',
    builder: { key: licenseKeyPositional },
    examples: [['latchkey license history ABCDE-FGHJK-LMNPQ-RSTUV', 'who counted each use, and when']],
    list: { path: licensesPath, member: 'changes', item: changeObject, row: changeRow },
    within: ({ key }) => `/${encodeURIComponent(readLicenseKey(key))}/history`,
  }),
];

function stateOf(listed: ListedLicenseObject): string {
  if (listed.state !== 'enabled') return listed.state;
  return listed.refunded_at === null ? stateWord(listed) : `${stateWord(listed)}, refunded`;
}

/** Shows the answer to a verify, and says `since` when the store answers 404 for the key. */
async function showMissing(
  args: GlobalOptions,
  output: Output,
  verify: Call,
  since: string,
): Promise<number> {
  const line = `The store has answered 404 for this key since ${since}.`;
  const show: typeof licenseView.show = (license, answer, hint) => {
    const fields = licenseView.show(license, answer, hint);
    const confirmedAt = Date.parse(String(answer.headers[provenanceHeaderNames.confirmedAt.toLowerCase()]));
    const isFoundAgain = confirmedAt > Date.parse(since);
    return isFoundAgain ? fields : [fields, line].flat();
  };
  try {
    return await requestAndShow(args, output, verify, { ...licenseView, show });
  } catch (error) {
    if (!(error instanceof CommandError) || error.refusal?.code !== 'license_not_found') throw error;
    throw new CommandError([...error.lines, line], error.code, error.refusal);
  }
}

/** Null: the daemon is a holder, which has no list. */
async function findLicense(
  options: GlobalOptions,
  key: string,
): Promise<Result<z.infer<typeof licenseList>> | null> {
  try {
    return await request(options, { path: licensesPath, query: { license_key: key } }, licenseList);
  } catch (error) {
    if (error instanceof CommandError && error.refusal?.code === 'not_offered_by_holder') return null;
    throw error;
  }
}

async function productOf(options: GlobalOptions, key: string): Promise<Sold | null> {
  return await dataOrNull(options, { path: pathOf('/admin/v1/products', key) }, soldProduct);
}

async function partsOfFeatures(...asked: Parameters<ReadLicensePart>): Promise<readonly LicensePart[]> {
  const loads = features.flatMap(({ licensePart }) => licensePart ?? []);
  return await Promise.all(loads.map(async (load) => await (await load())(...asked)));
}

async function lastChanges(options: GlobalOptions, key: string): Promise<readonly ChangeObject[]> {
  const path = `${pathOf(licensesPath, key)}/history`;
  const list = await dataOrNull(options, { path, query: { limit: shownChanges } }, changeList);
  return list?.changes ?? [];
}

function formatLicense(
  license: SoldLicenseObject,
  sold: Sold | null,
  { history, parts }: { history: readonly ChangeObject[]; parts: readonly LicensePart[] },
): Shown {
  const fields = formatFields({
    ...licenseFields(license),
    'product name': sold?.name ?? null,
    purchase: license.purchase_id ?? 'none: not sold here',
    refunded: instant(license.refunded_at),
    ...(Object.assign({}, ...parts.map((part) => part.fields)) as LicensePart['fields']),
  });
  return [
    fields,
    ...parts.flatMap(({ blocks }) => blocks),
    ...(history.length === 0 ? [] : [formatTable(history.map(changeRow))]),
  ];
}

/** The cells of a change by the names of their columns. */
function changeRow({ at, change: what, credential, before, after }: ChangeObject): Record<string, Cell> {
  return {
    at: instant(at),
    change: what,
    'by credential': credential,
    uses: formatStep(before.uses, after.uses),
    state: formatStep(formatEnabled(before.enabled), formatEnabled(after.enabled)),
    ...(after.expires_at !== undefined && { 'valid until': formatStep(endOf(before), endOf(after)) }),
  };
}

function endOf({ expires_at: end }: ChangeObject['before']): string {
  return end ?? 'for ever';
}

function formatEnabled(enabled: boolean): string {
  return enabled ? 'valid' : 'disabled';
}

function formatStep(before: string | number, after: string | number): string {
  return before === after ? String(after) : `${before} → ${after}`;
}
