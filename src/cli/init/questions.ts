import { confirm, isCancel, password, select, text } from '@clack/prompts';
import type { z } from 'zod';
import * as types from '../../config/types.ts';
import { dialectNames } from '../../domain/dialect.ts';
import type { GivenStore } from './given.ts';
import type { PlannedSecret, PlannedStore } from './plan.ts';

/** Whoever was asked has had enough. */
export class Cancelled extends Error {}

/** Says what is wrong with an answer; `undefined`: nothing. */
type Judge = (answer: string | undefined) => string | undefined;

/** Standard output is for the result. */
const output = process.stderr;

/** Asks for what options do not say of the store; null: an authority, which has none. */
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

/** Asks for what is not given; `before`: what was answered the last time. */
export async function askForStore(given: GivenStore, before: PlannedStore | null): Promise<PlannedStore> {
  const baseUrl =
    given.baseUrl ?? (await askText('Base URL of the store’s API', types.baseUrl, before?.baseUrl));
  const products = [await askProduct(given, before?.products[0]?.key)];
  if (given.product === undefined) {
    while (kept(await confirm({ output, message: 'Another product?', initialValue: false })))
      products.push(await askProduct({}, undefined));
  }
  // Whoever names a product by options is not asked for what need not be given.
  const isAsked = given.apiKey === undefined && given.product === undefined;
  const asked = isAsked
    ? await askSecret('API key of your account at the store, for coupons (optional)', true)
    : null;
  const dialect = given.dialect ?? before?.dialect ?? dialectNames[0];
  return { baseUrl, dialect, apiKey: given.apiKey ?? asked, products };
}

/** Asks what to do about a store that did not pass. */
export async function askWhatNow(): Promise<'again' | 'write' | 'stop'> {
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
  const validate = judgeAs(type);
  const options = { output, message, validate };
  return kept(await text(before === undefined ? options : { ...options, initialValue: before })).trim();
}

/** An empty answer, where it is allowed, is null. */
async function askSecret(message: string, isOptional: boolean): Promise<PlannedSecret | null> {
  const judge = judgeAs(types.secret);
  const validate: Judge = (given = '') => (isOptional && given === '' ? undefined : judge(given));
  // An empty answer is `undefined`, whatever its type says.
  const answer = kept<string | symbol | undefined>(await password({ output, message, validate })) ?? '';
  return answer === '' ? null : { text: answer.trim() };
}

function judgeAs(type: z.ZodType): Judge {
  return (answer = '') => {
    if (answer.trim() === '') return 'is required';
    return type.safeParse(answer.trim()).error?.issues[0]?.message;
  };
}

/** A prompt that was left by Ctrl-C is answered by a symbol. */
function kept<Answer>(answer: Answer): Exclude<Answer, symbol> {
  if (isCancel(answer)) throw new Cancelled();
  return answer as Exclude<Answer, symbol>;
}
