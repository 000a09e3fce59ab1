import type { FastifyInstance } from 'fastify';
import { sha256, systemRandom } from '../../../src/daemon/system/machine.ts';
import type { App } from '../../../src/http/app.ts';
import { consoleDesk } from '../../../src/features/console/http/desk.ts';
import { consolePage } from '../../../src/features/console/http/page.ts';
import type { SessionObject, SignInObject } from '../../../src/features/console/wire/console.ts';
import { adminToken, authorityStatus, openApp, serverOf, type TestApp } from '../../support/app/http-app.ts';
import { silentConsole } from './app-part.ts';

/** An authority that serves the console, with a clock that the test moves. */
export interface ConsoleApp extends AsyncDisposable {
  readonly opened: TestApp;
  readonly server: FastifyInstance;
  /** Moves the clock. */
  advance(ms: number): void;
  /** Begins a sign-in as the page does. */
  begin(): Promise<SignInObject>;
  /** Asks for the session as the page does. */
  exchange(secret: string): Promise<{ status: number; session: SessionObject['session'] | undefined }>;
  confirm(code: string, isAdmin?: boolean): Promise<number>;
  /** Signs in and returns the token of the session. */
  signIn(isAdmin?: boolean): Promise<string>;
}

/** What a browser adds to a request of the page. */
export const fromPage = { 'sec-fetch-site': 'same-origin', host: '127.0.0.1:8787' };
export const origin = 'http://127.0.0.1:8787';
export const operator = { authorization: `Bearer ${adminToken}` };

export async function openConsole(changes: Partial<App> = {}, isServed = true): Promise<ConsoleApp> {
  let now = Date.parse('2026-02-22T11:00:00Z');
  const start = now;
  const clock = { now: () => now, monotonic: () => now - start };
  const desk = consoleDesk({
    clock,
    random: systemRandom,
    digest: sha256,
    address: () => origin,
    options: () => ['--state-dir', '/state'],
  });
  const console = { ...silentConsole({ status: () => authorityStatus }), desk: isServed ? desk : null };
  const opened = await openApp({ console, ...changes });
  const server = serverOf(opened.app, { servesPages: true }, [consolePage]);
  const post = async (url: string, payload: object, headers: object) =>
    await server.inject({ method: 'POST', url, payload, headers: { ...headers } });
  const begin: ConsoleApp['begin'] = async () =>
    (await post('/console/v1/sign-ins', {}, { ...fromPage, origin })).json<{ data: SignInObject }>().data;
  const exchange: ConsoleApp['exchange'] = async (secret) => {
    const answer = await post('/console/v1/sessions', { secret }, { ...fromPage, origin });
    return { status: answer.statusCode, session: answer.json<{ data?: SessionObject }>().data?.session };
  };
  const confirm: ConsoleApp['confirm'] = async (code, admin = false) =>
    (await post(`/admin/v1/console/sign-ins/${code}/confirm`, { admin }, operator)).statusCode;
  return {
    opened,
    server,
    advance: (ms) => {
      now += ms;
    },
    begin,
    exchange,
    confirm,
    async signIn(isAdmin = false) {
      const { code, secret } = await begin();
      await confirm(code, isAdmin);
      const { session } = await exchange(secret);
      if (!session) throw new Error('the sign-in failed');
      return session.token;
    },
    async [Symbol.asyncDispose]() {
      await server.close();
      await opened[Symbol.asyncDispose]();
    },
  };
}

/** The page of a daemon and the files that the page names, by their names. */
export async function servedConsole(tcp: string): Promise<Map<string, string>> {
  const page = await (await fetch(new URL('/console', tcp))).text();
  const names = [...page.matchAll(/"\/console\/([^"]+)"/g)].map(([, name = '']) => name);
  const read = async (name: string) => {
    const answer = await fetch(new URL(`/console/${name}`, tcp));
    return [name, await answer.text()] as const;
  };
  return new Map([['index.html', page], ...(await Promise.all(names.map(read)))]);
}
