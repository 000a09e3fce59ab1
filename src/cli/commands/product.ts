import { formatDuration, parseDuration } from '../../config/value/unit.ts';
import { type ProductObject, productObject } from '../../wire/catalogue.ts';
import { defineList, defineRequest, pathOf, request, requestAndShow, type View } from '../client/request.ts';
import {
  type Args,
  defineCommand,
  type GlobalOptions,
  positional,
  textOption,
  UsageError,
} from '../command.ts';
import { type Cell, formatFields, instant, whole } from '../format.ts';
import type { Output } from '../output.ts';
import { keepOldOption, readKeepOld, readSecret } from '../values.ts';
import { readWords } from './license-terms.ts';

const productsPath = '/admin/v1/products';

const productPositional = positional('Product key', 'product');

/** The options for the terms of leases. */
const leaseTermsOptions = {
  seats: textOption('Devices that may use a license at the same time: a number, or unlimited'),
  hold: textOption('How long a seat stays taken after the last lease of its device has expired, such as 90d'),
  term: textOption('How long a lease is valid, such as 30d'),
  refresh: textOption('After which time a holder renews a lease, such as 1d'),
  'lease-email': {
    choices: ['true', 'false'],
    describe: 'Whether leases contain the e-mail address of the buyer',
  },
} as const;

/** The options for what a product says about its licenses. */
const licenseTermsOptions = {
  'license-for': textOption('How long a new license is valid: 30d, 6mo, 1y …; none: for ever'),
  entitlement: { ...textOption('What a new license unlocks; may be repeated; none: nothing'), array: true },
  'expiry-grace': textOption(
    'How long licenses are answered as valid after their end, such as 7d; 0s: no longer',
  ),
} as const;

const productView: View<ProductObject> = {
  schema: productObject,
  show: (product) => formatFields(allFields(product)),
};

const newSecretView: View<ProductObject> = {
  schema: productObject,
  show: (created) => [
    formatFields({
      ...allFields(created),
      secret: created.secret,
      'old one until': instant(created.old_secret_until),
    }),
    'The secret is shown only this once.',
  ],
};

export const commands = [
  defineRequest({
    command: 'add <name>',
    describe: 'Add a product',
    builder: {
      name: positional('Name'),
      recurring: { type: 'boolean', describe: 'Has a recurring price' },
      account: textOption('Account id', 'account'),
      key: textOption('Product key of an existing store'),
      'secret-file': textOption('File with its secret from an existing store', 'file'),
      ...leaseTermsOptions,
      ...licenseTermsOptions,
    },
    examples: [
      ['latchkey product add "My editor"', 'creates a key and a secret'],
      ['latchkey product add "My editor" --key RGsF --secret-file rgsf.secret', 'keeps what callers know'],
    ],
    request: ({ name, recurring, account, key, secretFile, ...terms }) => ({
      method: 'POST',
      path: productsPath,
      json: {
        name,
        recurring,
        account_id: account,
        product_key: key,
        secret: readSecret(secretFile),
        ...readLeaseTerms(terms),
        ...readLicenseTerms(terms),
      },
    }),
    view: newSecretView,
  }),
  defineList({
    command: 'list',
    describe: 'List products',
    builder: {
      account: textOption('Only of this account', 'account'),
      archived: { choices: ['true', 'false'], describe: 'Only archived products, or only those on sale' },
    },
    examples: [['latchkey product list --archived false', 'the products on sale']],
    list: { path: productsPath, member: 'products', item: productObject, row: productFields },
    query: ({ account, archived }) => ({ account_id: account, archived }),
  }),
  defineRequest({
    command: 'show <product>',
    describe: 'Show a product',
    builder: { product: productPositional },
    examples: [['latchkey product show RGsF', 'its name, price and state']],
    request: ({ product }) => ({ path: pathOf(productsPath, product) }),
    view: productView,
  }),
  defineCommand({
    command: 'update <product>',
    describe: 'Rename a product, or change its price or the terms of its licenses and leases',
    builder: {
      product: productPositional,
      name: textOption('New name'),
      recurring: { choices: ['true', 'false'], describe: 'Whether it has a recurring price' },
      ...leaseTermsOptions,
      ...licenseTermsOptions,
    },
    examples: [
      ['latchkey product update RGsF --name "My editor 2"', 'renames it; its keys stay valid'],
      ['latchkey product update RGsF --seats 3 --hold 90d', 'three devices may use a license'],
    ],
    handler: async (args, output) => {
      const { name, recurring } = args;
      const terms = { ...readLeaseTerms(args), ...readLicenseTerms(args) };
      const changes = {
        ...(name !== undefined && { name }),
        ...(recurring !== undefined && { recurring: recurring === 'true' }),
      };
      if (Object.keys({ ...changes, ...terms }).length === 0) {
        const options = [
          'name',
          'recurring',
          ...Object.keys({ ...leaseTermsOptions, ...licenseTermsOptions }),
        ].map((option) => `--${option}`);
        throw new UsageError(`Give something to change: ${options.join(', ')}`);
      }
      return await changeProduct(args, output, changes, terms);
    },
  }),
  defineCommand({
    command: 'archive <product>',
    describe: 'Stop selling a product; its keys stay valid',
    builder: { product: productPositional },
    examples: [['latchkey product archive RGsF', 'no more sales; its keys stay valid']],
    handler: async (args, output) => await changeProduct(args, output, { archived: true }),
  }),
  defineCommand({
    command: 'unarchive <product>',
    describe: 'Sell an archived product again',
    builder: { product: productPositional },
    examples: [['latchkey product unarchive RGsF', 'it is on sale again']],
    handler: async (args, output) => await changeProduct(args, output, { archived: false }),
  }),
  defineRequest({
    command: 'rotate <product>',
    describe: 'Create a new secret; the old one stops at once, or after a while',
    builder: { product: productPositional, 'keep-old': keepOldOption },
    examples: [
      ['latchkey product rotate RGsF --keep-old 24h', 'callers have a day to change to the new one'],
    ],
    request: (args) => ({
      method: 'POST',
      path: `${pathOf(productsPath, args.product)}/rotate-secret`,
      json: { keep_old_s: readKeepOld(args.keepOld) },
    }),
    view: newSecretView,
  }),
];

/** The parameters of the options that are given. */
function readLeaseTerms({ seats, hold, term, refresh, leaseEmail }: Args<typeof leaseTermsOptions>): object {
  return {
    ...(seats !== undefined && { seats: /^\d{1,9}$/.test(seats) ? Number(seats) : seats }),
    ...(hold !== undefined && { lease_hold_s: readSeconds('hold', hold) }),
    ...(term !== undefined && { lease_term_s: readSeconds('term', term) }),
    ...(refresh !== undefined && { lease_refresh_s: readSeconds('refresh', refresh) }),
    ...(leaseEmail !== undefined && { lease_email: leaseEmail === 'true' }),
  };
}

function readLicenseTerms({
  licenseFor,
  entitlement,
  expiryGrace,
}: Args<typeof licenseTermsOptions>): object {
  return {
    ...(licenseFor !== undefined && { license_for: licenseFor }),
    ...(entitlement !== undefined && { entitlements: readWords(entitlement) }),
    ...(expiryGrace !== undefined && { expiry_grace_s: readSeconds('expiry-grace', expiryGrace) }),
  };
}

function readSeconds(option: string, text: string): number {
  const durationMs = parseDuration(text);
  if (durationMs !== undefined) return Math.round(durationMs / 1000);
  throw new UsageError(`--${option} must be a duration such as 30s, 24h or 90d`);
}

/** Reads a product, and sends it with the changes. */
async function changeProduct(
  options: GlobalOptions & { readonly product: string },
  output: Output,
  changes: Partial<Pick<ProductObject, 'name' | 'recurring' | 'archived'>>,
  terms: object = {},
): Promise<number> {
  const path = pathOf(productsPath, options.product);
  const { name, recurring, archived } = (await request(options, { path }, productObject)).data;
  const json = { name, recurring, archived, ...changes, ...terms };
  return await requestAndShow(options, output, { method: 'PUT', path, json }, productView);
}

function allFields(product: ProductObject): Record<string, Cell> {
  return { ...productFields(product), ...licenseTermFields(product), ...leaseFields(product) };
}

function leaseFields(product: ProductObject): Record<string, Cell> {
  const durationOf = (seconds: number): string => formatDuration(seconds * 1000);
  return {
    seats: product.seats ?? 'unlimited',
    'seats are held': durationOf(product.lease_hold_s),
    'leases last': durationOf(product.lease_term_s),
    'leases are renewed after': durationOf(product.lease_refresh_s),
    'leases show e-mail': product.lease_email ? 'yes' : 'no',
  };
}

function licenseTermFields({
  license_for: time,
  entitlements,
  expiry_grace_s: grace,
}: ProductObject): Record<string, Cell> {
  return {
    'licenses are valid for': time ?? 'ever',
    'licenses unlock': entitlements.length === 0 ? null : entitlements.join(', '),
    'grace after their end': grace === 0 ? null : formatDuration(grace * 1000),
  };
}

function productFields(product: ProductObject): Record<string, Cell> {
  return {
    product: whole(product.product_key),
    name: product.name,
    price: product.recurring ? 'recurring' : 'once',
    state: product.archived ? 'archived' : 'on sale',
    account: whole(product.account_id),
  };
}
