import { failWith, type Result } from '../../../domain/problem/problem.ts';
import type { WriteOptions } from '../../../service/ports.ts';
import {
  confirmation,
  serializeSession,
  serializeSignIn,
  serializeWaiting,
  sessionObject,
  sessionParameters,
  signInObject,
  waitingSignInList,
} from '../wire/console.ts';
import { enveloped } from '../../../wire/response.ts';
import type { App } from '../../../http/app.ts';
import { created, noContent, ok } from '../../../http/response.ts';
import { route, type Route } from '../../../http/route.ts';
import { checkOwnPage } from './access.ts';

const shared = {
  tag: 'Console',
  roles: ['authority', 'agent'],
  elsewhere: { detail: 'A holder has no console: an agent and an authority have one.' },
} as const;

const begin = route({
  ...shared,
  method: 'POST',
  path: '/console/v1/sign-ins',
  operationId: 'beginSignIn',
  summary: 'Begin a sign-in: the page shows the code, and a command confirms the code',
  refusals: ['console_off', 'rate_limited'],
  access: 'anyone',
  check: checkOwnPage,
  answersSecret: true,
  answers: { 201: enveloped(signInObject) },
  async handle({ app, userAgent }) {
    const { desk } = app.console;
    if (desk === null) return off();
    const signIn = (await desk.load()).begin(userAgent);
    return signIn.ok ? created(serializeSignIn({ ...signIn.value, options: desk.options() })) : signIn;
  },
});

const exchange = route({
  ...shared,
  method: 'POST',
  path: '/console/v1/sessions',
  operationId: 'startSession',
  summary: 'Get the session of a confirmed sign-in, once; null while the code is not confirmed',
  refusals: ['console_off', 'sign_in_not_found'],
  access: 'anyone',
  check: checkOwnPage,
  answersSecret: true,
  // It is no change that a person made: the confirmation is in the audit log.
  readsOnly: true,
  body: sessionParameters,
  answers: { 200: enveloped(sessionObject) },
  async handle({ app, body: { secret } }) {
    const { desk } = app.console;
    if (desk === null) return off();
    const session = (await desk.load()).exchange(secret);
    return session.ok ? ok(serializeSession(session.value)) : session;
  },
});

const end = route({
  ...shared,
  method: 'DELETE',
  path: '/console/v1/sessions',
  operationId: 'endSession',
  summary: 'End the session of the token',
  refusals: ['console_off', 'sign_in_not_found'],
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  check: checkOwnPage,
  sessions: 'all',
  repeats: true,
  answers: { 204: null },
  async handle({ app, principal, writeOptions }) {
    const { desk } = app.console;
    if (desk === null) return off();
    const ended = (await desk.load()).end(principal);
    if (!ended.ok) return ended;
    await record(app, { act: 'sign_out', code: ended.value, detail: '' }, writeOptions);
    return noContent();
  },
});

const list = route({
  ...shared,
  method: 'GET',
  path: '/admin/v1/console/sign-ins',
  operationId: 'listSignIns',
  summary: 'The address of the console, and the pages that wait for the confirmation of their codes',
  refusals: ['console_off'],
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  sessions: 'none',
  answers: { 200: enveloped(waitingSignInList) },
  async handle({ app }) {
    const { desk } = app.console;
    const url = desk?.url() ?? null;
    if (desk === null || url === null) return off();
    return ok(serializeWaiting(url, (await desk.load()).waiting()));
  },
});

const confirm = route({
  ...shared,
  method: 'POST',
  path: '/admin/v1/console/sign-ins/:code/confirm',
  operationId: 'confirmSignIn',
  summary: 'Let the page that shows the code get a session within 60 seconds',
  refusals: ['console_off', 'sign_in_not_found'],
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  sessions: 'none',
  repeats: true,
  body: confirmation,
  answers: { 204: null },
  async handle({ app, path: { code }, body: { admin }, writeOptions }) {
    const { desk } = app.console;
    if (desk === null) return off();
    const confirmed = (await desk.load()).confirm(code, admin);
    if (!confirmed.ok) return confirmed;
    const detail = admin ? 'may change things' : 'may only read';
    await record(app, { act: 'sign_in', code: confirmed.value, detail }, writeOptions);
    return noContent();
  },
});

const refuse = route({
  ...shared,
  method: 'POST',
  path: '/admin/v1/console/sign-ins/:code/refuse',
  operationId: 'refuseSignIn',
  summary: 'Let the page that shows the code get no session',
  refusals: ['console_off', 'sign_in_not_found'],
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  sessions: 'none',
  repeats: true,
  answers: { 204: null },
  async handle({ app, path: { code }, writeOptions }) {
    const { desk } = app.console;
    if (desk === null) return off();
    const refused = (await desk.load()).refuse(code);
    if (!refused.ok) return refused;
    await record(app, { act: 'refuse', code: refused.value, detail: '' }, writeOptions);
    return noContent();
  },
});

function off(): Result<never> {
  return failWith('console_off', 'No listener of this process serves the console.');
}

/** Adds an audit entry. A person must be able to look at a daemon whose store accepts no writes. */
async function record(
  { writer, log }: App,
  command: { act: 'sign_in' | 'refuse' | 'sign_out'; code: string; detail: string },
  writeOptions: WriteOptions,
): Promise<void> {
  await writer.write('recordConsoleAct', command, writeOptions).catch((error: unknown) => {
    log.warn({ err: error, act: command.act }, 'an audit entry could not be stored');
  });
}

/** The sign-in of the console (../page/README.md). */
export const consoleRoutes: readonly Route[] = [begin, exchange, end, list, confirm, refuse];
