import { request, requestAndShow, type View } from '../../client/request.ts';
import { formatDuration, parseDuration } from '../../../config/value/unit.ts';
import { type GlobalOptions, textOption, UsageError } from '../../command.ts';
import { type Cell, formatFields, instant, whole } from '../../format.ts';
import type { Output } from '../../output.ts';
import { type ProductObject, productObject } from '../../../wire/product.ts';

export const productsPath = '/admin/v1/products';

/** The options for the terms of leases. */
export const leaseTermsOptions = {
  seats: textOption('Devices that may use a license at the same time: a number, or unlimited'),
  hold: textOption('How long a seat stays taken after the last lease of its device has expired, such as 90d'),
  term: textOption('How long a lease is valid, such as 30d'),
  refresh: textOption('After which time a holder renews a lease, such as 1d'),
  'lease-email': {
    choices: ['true', 'false'],
    describe: 'Whether leases contain the e-mail address of the buyer',
  },
} as const;

type LeaseTermsArgs = {
  readonly seats?: string | undefined;
  readonly hold?: string | undefined;
  readonly term?: string | undefined;
  readonly refresh?: string | undefined;
  readonly leaseEmail?: string | undefined;
};

/** The parameters of the options that are given. */
export function readLeaseTerms({ seats, hold, term, refresh, leaseEmail }: LeaseTermsArgs): object {
  return {
    ...(seats !== undefined && { seats: /^\d{1,9}$/.test(seats) ? Number(seats) : seats }),
    ...(hold !== undefined && { lease_hold_s: readSeconds('hold', hold) }),
    ...(term !== undefined && { lease_term_s: readSeconds('term', term) }),
    ...(refresh !== undefined && { lease_refresh_s: readSeconds('refresh', refresh) }),
    ...(leaseEmail !== undefined && { lease_email: leaseEmail === 'true' }),
  };
}

function readSeconds(option: string, text: string): number {
  const durationMs = parseDuration(text);
  if (durationMs !== undefined) return Math.round(durationMs / 1000);
  throw new UsageError(`--${option} must be a duration such as 30s, 24h or 90d`);
}

export const productView: View<ProductObject> = {
  schema: productObject,
  show: (product) => formatFields({ ...productFields(product), ...leaseFields(product) }),
};

export const newSecretView: View<ProductObject> = {
  schema: productObject,
  show: (created) => [
    formatFields({
      ...productFields(created),
      secret: created.secret,
      'old one until': instant(created.old_secret_until),
    }),
    'The secret is shown only this once.',
  ],
};

/** Reads a product, and sends it with the changes. */
export async function changeProduct(
  options: GlobalOptions & { readonly product: string },
  output: Output,
  changes: Partial<Pick<ProductObject, 'name' | 'recurring' | 'archived'>>,
  leaseTerms: object = {},
): Promise<number> {
  const path = productPath(options.product);
  const { name, recurring, archived } = (await request(options, { path }, productObject)).data;
  const json = { name, recurring, archived, ...changes, ...leaseTerms };
  return await requestAndShow(options, output, { method: 'PUT', path, json }, productView);
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

export function productPath(key: string): string {
  return `${productsPath}/${encodeURIComponent(key)}`;
}

export function productFields(product: ProductObject): Record<string, Cell> {
  return {
    product: whole(product.product_key),
    name: product.name,
    price: product.recurring ? 'recurring' : 'once',
    state: product.archived ? 'archived' : 'on sale',
    account: whole(product.account_id),
  };
}
