import { maskedKey } from '../../../domain/license.ts';
import type { ProblemCode } from '../../../domain/problem/problem-table.ts';
import { statusAt } from '../../../domain/terms.ts';
import type { Activation } from '../../leases/domain/lease.ts';
import { seatEnd } from '../domain/seat-end.ts';
import { html, type Html } from './html.ts';
import { form, type FormSession, paths, type View } from './layout.ts';
import { type LicenseView, maxDevices } from './license-view.ts';
import type { Texts } from './texts/english.ts';

/** A sentence about what the last form has done. */
export type Note = { role: 'status' | 'alert'; text: string };

function noteOf(note: Note | null): Html | null {
  return note === null ? null : html`<p role="${note.role}">${note.text}</p>`;
}

type StartOptions = { asksEmail: boolean; sendsMails: boolean; note: Note | null };

/** Where a buyer types the license key. `sendsMails`: a system of the seller gets the events about lost license keys. */
export function startView(texts: Texts, { asksEmail, sendsMails, note }: StartOptions): View {
  // With the type `email`, browsers refuse or change letters beyond ASCII.
  const emailField = (id: string): Html =>
    html`<label for="${id}">${texts.email}</label>
      <input
        id="${id}"
        name="email"
        inputmode="email"
        autocomplete="email"
        autocapitalize="none"
        spellcheck="false"
        maxlength="320"
        required
      />`;
  const open = html`<label for="key">${texts.licenseKey}</label>
    <small id="hint">${texts.licenseKeyHint}</small>
    <input
      id="key"
      name="license_key"
      class="code"
      autocomplete="off"
      autocapitalize="characters"
      spellcheck="false"
      maxlength="1024"
      aria-describedby="hint"
      required
    />
    ${asksEmail ? emailField('email') : null}
    <button class="first">${texts.open}</button>`;
  const recover = html`<section aria-labelledby="lost">
    <h2 id="lost">${texts.lostKey}</h2>
    <p>${texts.lostKeyText}</p>
    ${form(texts, paths.recover, null, html`${emailField('address')}<button>${texts.sendKeys}</button>`)}
  </section>`;
  const body = html`${noteOf(note)}
    <p>${texts.intro}</p>
    <section>${form(texts, paths.license, null, open)}</section>
    ${sendsMails ? recover : null}`;
  return { heading: null, session: null, body };
}

/** The same whether the address is known or not. */
export function mailAskedView(texts: Texts): View {
  const body = html`<section>
    <p>${texts.mailAskedText}</p>
    ${toStart(texts)}
  </section>`;
  return { heading: texts.mailAsked, session: null, body };
}

function toStart(texts: Texts): Html {
  return html`<p><a href="${paths.license}?lang=${texts.language}">${texts.toStart}</a></p>`;
}

type LicenseOptions = { session: FormSession; isIssuer: boolean; note: Note | null };

/** `isIssuer`: leases are set up, so machines without a network can get one. */
export function licenseView(
  texts: Texts,
  view: LicenseView,
  { session, isIssuer, note }: LicenseOptions,
): View {
  const { license, productName, seats, seatsTaken, movesLeft, devices, now } = view;
  const { licenseKey, expiresAt = null, graceUntil = null, usesLimit = null, terms } = license;
  const entitlements = terms?.entitlements ?? [];
  const status = statusAt(license, now);
  const grace =
    status === 'grace' && graceUntil !== null ? texts.usableUntil(texts.timeFormat(graceUntil)) : null;
  const more = license.replacedBy === undefined ? grace : texts.replaced;
  const end = expiresAt === null ? texts.noEnd : texts.dateFormat(expiresAt);
  const rows: readonly (readonly [string, Html | string])[] = [
    [texts.licenseKey, html`<span class="code">${maskedKey(licenseKey)}</span>`],
    [texts.status, html`<span class="${status}">${texts.statuses[status]}</span> ${more}`],
    ...(status === 'disabled' ? [] : [[texts.validUntil, end] as const]),
    ...(usesLimit === null ? [] : [[texts.uses, texts.usesTaken(license.uses, usesLimit)] as const]),
    ...(entitlements.length === 0 ? [] : [[texts.includes, entitlements.join(', ')] as const]),
    [texts.seats, texts.seatsTaken(seatsTaken, seats)],
  ];
  const body = html`${noteOf(note)}
    <section>
      <dl>
        ${rows.map(
          ([name, value]) =>
            html`<dt>${name}</dt>
              <dd>${value}</dd>`,
        )}
      </dl>
    </section>
    <section aria-labelledby="devices">
      <h2 id="devices">${texts.devices}</h2>
      ${
        devices.length === 0
          ? html`<p>${texts.noDevice}</p>`
          : html`<ul class="plain">
                ${devices.map((each) => deviceItem(texts, each, session))}
              </ul>
              <p class="hint">${texts.movesLeft(movesLeft)}</p>`
      }
      ${devices.length === maxDevices ? html`<p class="hint">${texts.moreDevices(maxDevices)}</p>` : null}
    </section>
    ${isIssuer ? requestForm(texts, session) : null}`;
  return { heading: productName, session, body };
}

export function nameOf(texts: Texts, { deviceName }: Activation): string {
  return deviceName ?? texts.unnamed;
}

function deviceItem(texts: Texts, device: Activation, session: FormSession): Html {
  const name = nameOf(texts, device);
  const button = html`<input type="hidden" name="device" value="${device.activationId}" />
    <button aria-label="${texts.freeSeat}: ${name}">${texts.freeSeat}</button>`;
  return html`<li>
    <span
      ><strong>${name}</strong> <small>${texts.lastContact(texts.dateFormat(device.renewedAt))}</small></span
    >
    ${form(texts, paths.seat, session, button)}
  </li>`;
}

function requestForm(texts: Texts, session: FormSession): Html {
  const content = html`<label for="file">${texts.requestFile}</label>
    <input id="file" name="file" type="file" />
    <label for="request">${texts.requestText}</label>
    <textarea
      id="request"
      name="request"
      class="code"
      rows="3"
      maxlength="8192"
      spellcheck="false"
    ></textarea>
    <div class="buttons">
      <button name="as" value="file">${texts.downloadAnswer}</button>
      <button name="as" value="code">${texts.showCode}</button>
    </div>`;
  return html`<section aria-labelledby="offline">
    <h2 id="offline">${texts.offline}</h2>
    <p>${texts.offlineText}</p>
    ${form(texts, paths.answer, session, content)}
  </section>`;
}

/** Asks whether a seat is to be freed, with the consequence; or says why it cannot be freed now. */
export function seatView(texts: Texts, view: LicenseView, device: Activation, session: FormSession): View {
  const { refreshMs, moves, movesLeft, now } = view;
  const name = nameOf(texts, device);
  const end = seatEnd(device, { refreshMs, moves, now });
  if (end.kind !== 'freed') {
    const why = end.kind === 'in_use' ? texts.inUse : texts.noMoveLeft;
    const body = html`<section>
      <p>${why(texts.timeFormat(end.from))}</p>
      ${backToLicense(texts, session, texts.back)}
    </section>`;
    return { heading: texts.seatStays(name), session, body };
  }
  const { isMove } = end;
  const consequences = [
    isMove ? texts.loses(name, texts.timeFormat(device.expiresAt)) : texts.hasLost(name),
    texts.usable,
    isMove ? texts.countsAsMove(movesLeft - 1) : texts.countsNot,
  ];
  const confirm = html`<input type="hidden" name="device" value="${device.activationId}" />
    <button class="first" name="confirmed" value="yes">${texts.freeSeat}</button>`;
  const body = html`<section>
    <ul>
      ${consequences.map((each) => html`<li>${each}</li>`)}
    </ul>
    <div class="buttons">
      ${form(texts, paths.seat, session, confirm)} ${backToLicense(texts, session, texts.keepSeat)}
    </div>
  </section>`;
  return { heading: texts.isSeatFreed(name), session, body };
}

function backToLicense(texts: Texts, session: FormSession, label: string): Html {
  return form(texts, paths.license, session, html`<button>${label}</button>`);
}

/** The answer to the request of a machine. `code`: an image of `answer`; null: it is too long. */
export function answerView(
  texts: Texts,
  { note, answer, code, request }: { note: string; answer: string; code: Html | null; request: string },
  session: FormSession,
): View {
  const download = html`<input type="hidden" name="request" value="${request}" />
    <button class="first" name="as" value="file">${texts.downloadAnswer}</button>`;
  const body = html`<p role="status">${note}</p>
    <section>
      <p>${code === null ? texts.noCode : texts.scanCode}</p>
      ${code === null ? null : html`<figure role="img" aria-label="${texts.qrCode}">${code}</figure>`}
      <div class="buttons">
        ${form(texts, paths.answer, session, download)} ${backToLicense(texts, session, texts.back)}
      </div>
    </section>
    <section>
      <details>
        <summary>${texts.answerText}</summary>
        <pre class="code">${answer}</pre>
      </details>
    </section>`;
  return { heading: texts.answer, session, body };
}

/** The page of a request that failed. */
export function problemView(texts: Texts, text: string): View {
  return {
    heading: null,
    session: null,
    body: html`<p role="alert">${text}</p>
      ${toStart(texts)}`,
  };
}

/** Why a request of a machine got no answer; null: something else is wrong. */
export function refusalText({ refusals }: Texts, code: ProblemCode): string | null {
  return (refusals as Partial<Record<ProblemCode, string>>)[code] ?? null;
}
