import { confirm, isCancel, password, select, text } from '@clack/prompts';
import type { z } from 'zod';
import * as types from '../../../config/setting-types.ts';
import { foreignStores, isForeignStore } from '../../../config/foreign-stores.ts';
import { dialectNames } from '../../../domain/header-names.ts';
import {
  isForeign,
  isIssuer,
  type PlannedForeignStore,
  type PlannedIssuer,
  type PlannedRole,
  type PlannedSecret,
  type PlannedStore,
  type RoleOptions,
  type StoreOptions,
} from './plan.ts';

export class Cancelled extends Error {}

/** Returns what is wrong with an answer, or `undefined`. */
type Validate = (answer: string | undefined) => string | undefined;

/** Standard output is for the result. */
const output = process.stderr;

/** Asks for what the options leave open. Null: an authority, which has no store. */
export async function askFor(storeOptions: RoleOptions): Promise<PlannedRole> {
  if (storeOptions === null || isIssuer(storeOptions)) return storeOptions;
  if (isForeign(storeOptions))
    return storeOptions.products.length > 0 ? storeOptions : await askForForeign(storeOptions);
  if (storeOptions !== undefined) return await askForStore(storeOptions, null);
  const role = await select({
    output,
    message: 'What should Latchkey run as?',
    options: [
      { value: 'agent', label: 'an agent', hint: 'beside your software, in front of your store’s API' },
      ...Object.entries(foreignStores).map(([name, { title }]) => ({
        value: name,
        label: `an agent of ${title}`,
        hint: `beside a program that was written for ${title}`,
      })),
      { value: 'authority', label: 'an authority', hint: 'the central API itself, with its own store' },
      { value: 'holder', label: 'a holder of leases', hint: 'on a customer’s machine, without a secret' },
    ],
  });
  const chosen = unlessCancelled(role);
  if (chosen === 'authority') return null;
  if (isForeignStore(chosen))
    return await askForForeign({ foreign: chosen, baseUrl: null, accessToken: null, products: [] });
  return chosen === 'holder' ? await askForIssuer(null) : await askForStore({}, null);
}

/** Asks again after some checks have failed. `before`: the previous answers. */
export async function askAgain(storeOptions: StoreOptions, before: PlannedRole): Promise<PlannedRole> {
  if (isIssuer(before)) return await askForIssuer(before);
  if (isForeign(before)) return await askForForeign(before);
  return await askForStore(storeOptions, before);
}

async function askForIssuer(before: PlannedIssuer | null): Promise<PlannedIssuer> {
  const issuer = await askText('URL of the issuer of leases', types.issuerUrl, before?.issuer);
  const root = await askText('File with a public root key of the vendor', types.text, before?.roots[0]);
  const product = await askText('Product key', types.text, before?.products[0]);
  return { issuer, roots: [root], products: [product] };
}

async function askForForeign(before: PlannedForeignStore): Promise<PlannedForeignStore> {
  const { title, productKey, withoutToken } = foreignStores[before.foreign];
  const message = `${productKey.name} of the product (${productKey.where})`;
  const products = [await askText(message, types.productKey, before.products[0])];
  while (await askForAnother()) products.push(await askText(message, types.productKey, undefined));
  const accessToken =
    before.accessToken ??
    (await askSecret(`Your access token at ${title} (optional; without it, ${withoutToken})`, true));
  return { ...before, products, accessToken };
}

async function askForAnother(): Promise<boolean> {
  return unlessCancelled(await confirm({ output, message: 'Another product?', initialValue: false }));
}

/** Asks for the values that are not given. `before`: the previous answers. */
export async function askForStore(
  storeOptions: StoreOptions,
  before: PlannedStore | null,
): Promise<PlannedStore> {
  const baseUrl =
    storeOptions.baseUrl ?? (await askText('Base URL of the store’s API', types.baseUrl, before?.baseUrl));
  const products = [await askProduct(storeOptions, before?.products[0]?.key)];
  if (storeOptions.product === undefined) {
    while (await askForAnother()) products.push(await askProduct({}, undefined));
  }
  // A user who passes options is not asked for optional values.
  const isAsked = storeOptions.apiKey === undefined && storeOptions.product === undefined;
  const asked = isAsked
    ? await askSecret('API key of your account at the store, for coupons (optional)', true)
    : null;
  const dialect = storeOptions.dialect ?? before?.dialect ?? dialectNames[0];
  return { baseUrl, dialect, apiKey: storeOptions.apiKey ?? asked, products };
}

export async function askNextStep(): Promise<'again' | 'write' | 'stop'> {
  const answer = await select({
    output,
    message: 'Some checks failed. What now?',
    options: [
      { value: 'again', label: 'ask me again' },
      { value: 'write', label: 'write the file anyway' },
      { value: 'stop', label: 'stop and write nothing' },
    ],
  });
  return unlessCancelled(answer);
}

async function askProduct(
  storeOptions: StoreOptions,
  before: string | undefined,
): Promise<PlannedStore['products'][number]> {
  const key = storeOptions.product ?? (await askText('Product key', types.text, before));
  const secret = storeOptions.secret ?? (await askSecret(`Secret of product ${key}`, false));
  return { key, secret: secret ?? { text: '' } };
}

async function askText(message: string, type: z.ZodType, before: string | undefined): Promise<string> {
  const validate = validateAs(type);
  const options = { output, message, validate };
  return unlessCancelled(
    await text(before === undefined ? options : { ...options, initialValue: before }),
  ).trim();
}

/** An empty answer, where it is allowed, is null. */
async function askSecret(message: string, isOptional: boolean): Promise<PlannedSecret | null> {
  const validateSecret = validateAs(types.secret);
  const validate: Validate = (secret = '') =>
    isOptional && secret === '' ? undefined : validateSecret(secret);
  // An empty answer is `undefined`, despite its type.
  const answer =
    unlessCancelled<string | symbol | undefined>(await password({ output, message, validate })) ?? '';
  return answer === '' ? null : { text: answer.trim() };
}

function validateAs(type: z.ZodType): Validate {
  return (answer = '') => {
    if (answer.trim() === '') return 'is required';
    return type.safeParse(answer.trim()).error?.issues[0]?.message;
  };
}

/** The prompt returns a symbol after Ctrl-C. */
function unlessCancelled<Answer>(answer: Answer): Exclude<Answer, symbol> {
  if (isCancel(answer)) throw new Cancelled();
  return answer as Exclude<Answer, symbol>;
}
