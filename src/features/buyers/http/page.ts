import { setTimeout } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { licenseKeysIn, maxLicenseKeyBytes } from '../../../domain/license.ts';
import { problems, type ProblemCode } from '../../../domain/problem/problem-table.ts';
import { failWith, notFound, type Result } from '../../../domain/problem/problem.ts';
import { parseJson } from '../../../domain/text.ts';
import type { App, ServerSettings } from '../../../http/app.ts';
import { receiveAnyBody } from '../../../http/entry/any-body.ts';
import { networkOf } from '../../../http/entry/client-address.ts';
import { isClosing } from '../../../http/entry/connections.ts';
import { logResponse } from '../../../http/entry/request-log.ts';
import { type Head, stateOf } from '../../../http/entry/request-state.ts';
import { ProblemError } from '../../../http/problem-error.ts';
import { problemOf } from '../../../http/problem-response.ts';
import type { PageHost, WebPage } from '../../../http/web-page.ts';
import { logKey } from '../../../service/lifecycle/start.ts';
import { storedLicenseKey } from '../../../service/pasted-keys.ts';
import type { WriteOptions } from '../../../service/ports.ts';
import type { FileAnswer } from '../../leases/service/ports.ts';
import { formToken, isFormToken } from './form-token.ts';
import { type FormSession, Layout, type PageSettings, paths, type View } from './layout.ts';
import { type LicenseView, openLicense, readLicense } from './license-view.ts';
import { type PageLimits, pageLimits, turnstile } from './limits.ts';
import { textsIn } from './texts/language.ts';
import type { Texts } from './texts/english.ts';
import * as views from './views.ts';

/** A request of a machine has at most 8 KiB; the rest is for the other fields. */
const maxFormBytes = 32 * 1024;

/** A refused entry is answered after this time: to read a license that exists takes longer, and would show. */
const refusalMs = 10;

/** The page for buyers at the public listener (../README.md). `monotonic`: monotonic ms. */
export function buyersPage(settings: PageSettings, monotonic: () => number): WebPage {
  const limits = pageLimits(monotonic);
  const passed = turnstile();
  const layout = new Layout(settings);
  return {
    isServedAt: (listener) => listener.public !== undefined,
    addTo: (server, host) =>
      receiveAnyBody(server, host.listener.limits, (scope) =>
        new BuyersPage({ settings, limits, passed, layout, ...host }).addTo(scope),
      ),
    hasSent: isOwnForm,
    admit: () => false,
  };
}

/** Everybody may link to the page. A form is sent by the page itself. */
function isOwnForm({ origin, host }: Head, { method, routeOptions: { url = '' } }: FastifyRequest): boolean {
  if (url !== paths.license && !url.startsWith(`${paths.license}/`)) return false;
  if (method === 'GET' || method === 'HEAD') return true;
  const [from, to] = [origin[0], `http://${host[0]}`].map((each) => URL.parse(each ?? '')?.hostname);
  // Without the scheme and the port: this listener does not know those of the proxy in front of it.
  return origin.length === 1 && from !== undefined && from === to;
}

type PageParts = {
  settings: PageSettings;
  limits: PageLimits;
  /** Resolves in a turn of the event loop of its own. */
  passed: () => Promise<void>;
  layout: Layout;
} & PageHost;

/** The fields of a form that were filled in. A file is a text as well. */
type Fields = ReadonlyMap<string, string>;

/** A form of a page that was opened with a license key. */
type OpenForm = { fields: Fields; texts: Texts; view: LicenseView; session: FormSession };

/** What is sent. `code`: why the form was refused; null: it was not. */
type Shown = { texts: Texts; view: View; code?: ProblemCode | null };

/** The page at one listener. */
class BuyersPage {
  readonly #parts: PageParts;

  constructor(parts: PageParts) {
    this.#parts = parts;
  }

  addTo(scope: FastifyInstance): void {
    const { passed } = this.#parts;
    const options = { bodyLimit: maxFormBytes };
    // A form is no JSON, and reading that can take long.
    scope.removeContentTypeParser('application/json');
    scope.addHook('onRequest', async (request) => this.#admit(request));
    scope.addHook('preHandler', passed);
    scope.setErrorHandler(async (error, request, reply) => {
      await passed();
      return this.#fail(error, request, reply);
    });
    scope.get(paths.license, async (request, reply) => await this.#start(request, reply));
    // A person has reloaded the page of a form by its address.
    scope.get(`${paths.license}/:form`, async (_, reply) => reply.redirect(paths.license, 303));
    scope.post(paths.license, options, async (request, reply) => await this.#open(request, reply));
    scope.post(paths.seat, options, async (request, reply) => await this.#free(request, reply));
    scope.post(paths.answer, options, async (request, reply) => await this.#answer(request, reply));
    scope.post(paths.recover, options, async (request, reply) => await this.#recover(request, reply));
  }

  /** Before the body is read: a sender of many forms must cost little. */
  #admit(request: FastifyRequest): void {
    const { app, listener, limits } = this.#parts;
    const { state } = app.readiness();
    if (state === 'starting' || state === 'draining') throw new ProblemError(state, 'Try again in a moment.');
    if (request.method !== 'POST') return;
    const { 'sec-fetch-site': site = 'same-origin' } = request.headers;
    if (site !== 'same-origin') throw foreignForm();
    limit(limits.networks.take(senderOf(request, listener)));
  }

  async #start(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const texts = textsFor(request, stateOf(request).query.get('lang'));
    return this.#send(reply, { texts, view: await this.#startView(texts, null) });
  }

  async #startView(texts: Texts, note: views.Note | null): Promise<View> {
    const { app, settings } = this.#parts;
    return views.startView(texts, { asksEmail: settings.askEmail, sendsMails: await sendsMails(app), note });
  }

  async #open(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { app, listener, limits, settings } = this.#parts;
    const fields = fieldsOf(request);
    if (fields.has('token')) return this.#showLicense(reply, await this.#openForm(request));
    const spellings = spellingsOf(fields.get('license_key') ?? '');
    // The last one is without what surrounds it, so all spellings of a license key have one limit.
    const key = app.digest(spellings.at(-1) ?? '');
    limit(limits.keys.take(`${key} ${senderOf(request, listener)}`) || limits.keysOfAll.take(key));
    const email = settings.askEmail ? emailIn(fields) : null;
    const wait = setTimeout(refusalMs);
    const view = await openLicense(app, { spellings, email });
    const texts = textsFor(request, fields.get('lang'));
    if (view === null) {
      await wait;
      const start = await this.#startView(texts, alert(texts.notFound));
      return this.#send(reply, { texts, view: start, code: 'license_not_found' });
    }
    const { licenseKey } = view.license;
    const token = formToken(await logKey(app.reader), view.license, app.now());
    return this.#showLicense(reply, { fields, texts, view, session: { licenseKey, token } });
  }

  /** Reads a form that an opened page has sent. */
  async #openForm(request: FastifyRequest): Promise<OpenForm> {
    const { app, limits } = this.#parts;
    const wait = setTimeout(refusalMs);
    const fields = fieldsOf(request);
    const [licenseKey = '', token = ''] = ['license_key', 'token'].map((name) => fields.get(name));
    const secret = await logKey(app.reader);
    const license = await app.reader.licenses.get(licenseKey);
    const isOpen = license !== null && isFormToken(token, secret, license, app.now());
    const view = isOpen ? await readLicense(app, licenseKey) : null;
    if (view === null) {
      await wait;
      throw foreignForm();
    }
    limit(limits.licenses.take(app.digest(licenseKey)));
    return { fields, texts: textsFor(request, fields.get('lang')), view, session: { licenseKey, token } };
  }

  #showLicense(
    reply: FastifyReply,
    { texts, view, session }: OpenForm,
    note: views.Note | null = null,
    code: ProblemCode | null = null,
  ): FastifyReply {
    const isIssuer = (this.#parts.app.leaseIssuer?.host() ?? null) !== null;
    const shown = views.licenseView(texts, view, { session, isIssuer, note });
    return this.#send(reply, { texts, view: shown, code });
  }

  async #free(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { app } = this.#parts;
    const form = await this.#openForm(request);
    const { fields, texts, view, session } = form;
    const device = view.devices.find(({ activationId }) => activationId === fields.get('device'));
    if (device === undefined) return this.#showLicense(reply, form, status(texts.seatWasFree));
    if (fields.get('confirmed') !== 'yes')
      return this.#send(reply, { texts, view: views.seatView(texts, view, device, session) });
    const command = { licenseKey: session.licenseKey, activationId: device.activationId };
    const freed = await app.writer.write('freeBuyersSeat', command, writeOptions(request));
    const after = (await readLicense(app, session.licenseKey)) ?? view;
    if (!freed.ok) {
      const { code } = freed.problem;
      // The button was pressed twice.
      if (code === 'activation_not_found')
        return this.#showLicense(reply, { ...form, view: after }, status(texts.seatWasFree));
      return this.#send(reply, { texts, view: views.seatView(texts, after, device, session), code });
    }
    const note = status(texts.seatFreed(views.nameOf(texts, device)));
    return this.#showLicense(reply, { ...form, view: after }, note);
  }

  async #answer(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const form = await this.#openForm(request);
    const { fields, texts, session } = form;
    const document = documentIn(fields.get('file') ?? fields.get('request') ?? '');
    const signed = await this.#sign(document, session.licenseKey, writeOptions(request));
    if (!signed.ok) {
      const { code, detail } = signed.problem;
      const text = views.refusalText(texts, code);
      if (text === null) throw new ProblemError(code, detail);
      return this.#showLicense(reply, form, alert(text), code);
    }
    const answer = JSON.stringify(signed.value);
    if (fields.get('as') === 'file')
      return reply
        .headers({ ...this.#parts.layout.headers, 'Content-Type': 'application/json; charset=utf-8' })
        .header('Content-Disposition', 'attachment; filename="machine.lease"')
        .send(answer);
    const { qrCode } = await import('./qr-code.ts');
    const shown = { note: noteOf(texts, signed.value), answer, code: qrCode(answer), request: document };
    return this.#send(reply, { texts, view: views.answerView(texts, shown, session) });
  }

  /** Signs the answer to the request of a machine, if it is about this license. */
  async #sign(document: string, licenseKey: string, options: WriteOptions): Promise<Result<FileAnswer>> {
    const { leaseIssuer, reader } = this.#parts.app;
    const named = claimsIn(document)?.['license_key'];
    if (leaseIssuer === null || typeof named !== 'string')
      return failWith('lease_request_invalid', 'This is no request for a lease.');
    const [spelling = ''] = spellingsOf(storable(named));
    if ((await storedLicenseKey(reader, spelling)) !== licenseKey) return notFound('license');
    return await leaseIssuer.sign(document, { until: null, accountId: null }, options);
  }

  async #recover(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { app, listener, limits } = this.#parts;
    const fields = fieldsOf(request);
    limit(limits.recoveries.take(senderOf(request, listener)) || limits.allRecoveries.take(''));
    const buyerEmail = emailIn(fields);
    // No answer waits for the write: its time would tell whether the address is known.
    if (buyerEmail !== '' && limits.mails.take(app.digest(buyerEmail.toLowerCase())) === 0)
      void app.writer
        .write('requestRecovery', { buyerEmail }, writeOptions(request))
        .catch((error: unknown) => {
          app.log.warn({ err: error }, 'the event about a lost license key could not be stored');
        });
    const texts = textsFor(request, fields.get('lang'));
    return this.#send(reply, { texts, view: views.mailAskedView(texts) });
  }

  #fail(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const { app } = this.#parts;
    const { code, retryAfterS = 1 } = problemOf(app, error, { id: request.id, hasLeft: reply.raw.destroyed });
    const { status } = problems[code];
    const { body } = request;
    const texts = textsFor(request, body instanceof Map ? body.get('lang') : undefined);
    if (status === 429 || status === 503) reply.header('Retry-After', String(retryAfterS));
    // A browser that is still sending would not see the page.
    if (code === 'body_too_large' && !isClosing(reply.raw)) reply.removeHeader('connection');
    const text = problemText(texts, { code, status, retryAfterS });
    return this.#send(reply, { texts, view: views.problemView(texts, text), code });
  }

  #send(reply: FastifyReply, { texts, view, code = null }: Shown): FastifyReply {
    const { app, layout } = this.#parts;
    const status = code === null ? 200 : problems[code].status;
    if (code !== null) logResponse(app, reply.request, { status, code });
    return reply.code(status).headers(layout.headers).send(layout.page(texts, view));
  }
}

function problemText(
  texts: Texts,
  { code, status, retryAfterS }: { code: ProblemCode; status: number; retryAfterS: number },
): string {
  if (code === 'rate_limited') return texts.tooMany(Math.ceil(retryAfterS / 60));
  if (code === 'origin_forbidden') return texts.expired;
  if (code === 'body_too_large') return texts.tooLarge;
  return status >= 500 ? texts.unavailable : texts.unreadable;
}

/** The license keys that a text may stand for. */
function spellingsOf(text: string): readonly string[] {
  return Buffer.byteLength(text) > maxLicenseKeyBytes ? [] : licenseKeysIn(text);
}

/** Also of a form that is too old: nothing is said about which it is. */
function foreignForm(): ProblemError {
  return new ProblemError('origin_forbidden', 'The form is not of an open page.');
}

/** Throws the problem of a sender who must wait. */
function limit(waitMs: number): void {
  if (waitMs === 0) return;
  throw new ProblemError('rate_limited', 'Too many forms are sent.', {
    retryAfterS: Math.ceil(waitMs / 1000),
  });
}

const alert = (text: string): views.Note => ({ role: 'alert', text });
const status = (text: string): views.Note => ({ role: 'status', text });

function textsFor({ headers }: FastifyRequest, named: unknown): Texts {
  return textsIn(named, headers['accept-language']);
}

/** The network of a sender. A provider may give one customer 48 bits, and as many customers share those as an IPv4 address. */
function senderOf(request: FastifyRequest, listener: ServerSettings): string {
  const { remoteAddress = '' } = request.raw.socket;
  const { forwardedFor } = stateOf(request).head;
  return networkOf(listener.public?.proxies.clientOf(remoteAddress, forwardedFor) ?? remoteAddress, 48);
}

function fieldsOf({ body }: FastifyRequest): Fields {
  if (body instanceof Error) throw body;
  const fields = body instanceof Map ? [...(body as Map<string, string>)] : [];
  return new Map(fields.map(([name, value]) => [name, storable(value)]));
}

/** No stored text contains `\0`, and some databases refuse to look it up. */
function storable(text: string): string {
  return text.replaceAll('\0', '');
}

function writeOptions({ id }: FastifyRequest): WriteOptions {
  return { actor: 'buyer', requestId: id, idempotency: null };
}

/** Whether a system of the seller gets the events about lost license keys. */
async function sendsMails({ reader }: Pick<App, 'reader'>): Promise<boolean> {
  const endpoints = await reader.webhooks.all();
  return endpoints.some(
    ({ state, types }) => state === 'active' && types?.includes('license.recovery_requested') !== false,
  );
}

/** An address in the form in which addresses are stored, apart from the letter case. */
function emailIn(fields: Fields): string {
  return (fields.get('email') ?? '').trim().normalize('NFC');
}

/** A signed document, without line breaks of a mail, and the bytes that PowerShell adds to a file (UTF-16). */
function documentIn(text: string): string {
  return text.replaceAll(/[^\w.-]/g, '');
}

/** The claims of a signed document, without a look at its signature; null: it is no document. */
function claimsIn(document: string): Readonly<Record<string, unknown>> | null {
  const claims = parseJson(Buffer.from(document.split('.')[1] ?? '', 'base64url').toString());
  return typeof claims === 'object' ? (claims as Record<string, unknown> | null) : null;
}

function noteOf(texts: Texts, answer: FileAnswer): string {
  if ('sequence' in answer) return texts.sequenced;
  if ('notice' in answer) return texts.noticed;
  return texts.leasedUntil(texts.dateFormat(Number(claimsIn(answer.lease)?.['exp']) * 1000));
}
