import { confirm, isCancel, password, select, text } from '@clack/prompts';
import type { z } from 'zod';
import * as types from '../../config/types.ts';
import { dialectNames } from '../../domain/header-names.ts';
import type { GivenStore, PlannedSecret, PlannedStore } from './plan.ts';

export class Cancelled extends Error {}

/** Returns what is wrong with an answer, or `undefined`. */
type Validate = (answer: string | undefined) => string | undefined;

/** Standard output is for the result. */
const output = process.stderr;

/** Asks for what the options leave open. Null: an authority, which has no store. */
export async function askFor(given: GivenStore | null | undefined): Promise<PlannedStore | null> {
  if (given === null) return null;
  if (given !== undefined) return await askForStore(given, null);
  const role = await select({
    output,
    message: 'What should Latchkey run as?',
    options: [
      { value: 'agent', label: 'an agent', hint: 'beside your software, in front of your store’s API' },
      { value: 'authority', label: 'an authority', hint: 'the central API itself, with its own store' },
    ],
  });
  return kept(role) === 'agent' ? await askForStore({}, null) : null;
}

/** Asks for the values that are not given. `before`: the previous answers. */
export async function askForStore(given: GivenStore, before: PlannedStore | null): Promise<PlannedStore> {
  const baseUrl =
    given.baseUrl ?? (await askText('Base URL of the store’s API', types.baseUrl, before?.baseUrl));
  const products = [await askProduct(given, before?.products[0]?.key)];
  if (given.product === undefined) {
    while (kept(await confirm({ output, message: 'Another product?', initialValue: false })))
      products.push(await askProduct({}, undefined));
  }
  // A user who passes options is not asked for optional values.
  const isAsked = given.apiKey === undefined && given.product === undefined;
  const asked = isAsked
    ? await askSecret('API key of your account at the store, for coupons (optional)', true)
    : null;
  const dialect = given.dialect ?? before?.dialect ?? dialectNames[0];
  return { baseUrl, dialect, apiKey: given.apiKey ?? asked, products };
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
  return kept(answer);
}

async function askProduct(
  given: GivenStore,
  before: string | undefined,
): Promise<PlannedStore['products'][number]> {
  const key = given.product ?? (await askText('Product key', types.text, before));
  const secret = given.secret ?? (await askSecret(`Secret of product ${key}`, false));
  return { key, secret: secret ?? { text: '' } };
}

async function askText(message: string, type: z.ZodType, before: string | undefined): Promise<string> {
  const validate = validateAs(type);
  const options = { output, message, validate };
  return kept(await text(before === undefined ? options : { ...options, initialValue: before })).trim();
}

/** An empty answer, where it is allowed, is null. */
async function askSecret(message: string, isOptional: boolean): Promise<PlannedSecret | null> {
  const validateSecret = validateAs(types.secret);
  const validate: Validate = (given = '') => (isOptional && given === '' ? undefined : validateSecret(given));
  // An empty answer is `undefined`, despite its type.
  const answer = kept<string | symbol | undefined>(await password({ output, message, validate })) ?? '';
  return answer === '' ? null : { text: answer.trim() };
}

function validateAs(type: z.ZodType): Validate {
  return (answer = '') => {
    if (answer.trim() === '') return 'is required';
    return type.safeParse(answer.trim()).error?.issues[0]?.message;
  };
}

/** The prompt returns a symbol after Ctrl-C. */
function kept<Answer>(answer: Answer): Exclude<Answer, symbol> {
  if (isCancel(answer)) throw new Cancelled();
  return answer as Exclude<Answer, symbol>;
}
