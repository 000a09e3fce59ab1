import { parseLicenseKey, type License } from '../../../domain/license.ts';
import { notFound, type Result } from '../../../domain/problem/problem.ts';
import { ok, type RouteResponse } from '../../../http/response.ts';
import { route, type Route } from '../../../http/route.ts';
import { accessibleAccount } from '../../../http/tenant.ts';
import { storedLicenseKey } from '../../../service/pasted-keys.ts';
import type { AuthorityReader } from '../../../service/tables.ts';
import { licenseObject, serializeLicense } from '../../../wire/license.ts';
import { enveloped } from '../../../wire/response.ts';
import {
  forgetParameters,
  forgottenObject,
  rekeyParameters,
  transferParameters,
  usesParameters,
} from '../wire/customer.ts';

const shared = {
  access: { credential: 'any', scope: 'admin' },
  roles: ['authority'],
  tag: 'Licenses',
} as const;
const refusals = ['license_not_found', 'license_replaced'] as const;
const answers = { 200: enveloped(licenseObject) };
const path = '/admin/v1/licenses/:key';

/** Changes the license that a path names, under the spelling that is stored. */
async function changeLicense(
  reader: Pick<AuthorityReader, 'licenses'>,
  key: string,
  change: (licenseKey: string) => Promise<Result<License>>,
): Promise<Result<RouteResponse>> {
  const licenseKey = parseLicenseKey(key);
  if (licenseKey === null) return notFound('license');
  const changed = await change(await storedLicenseKey(reader, licenseKey));
  return changed.ok ? ok(serializeLicense(changed.value)) : changed;
}

/** What a seller does for the buyer of a license (src/features/customers/README.md). */
export const customerRoutes: readonly Route[] = [
  route({
    ...shared,
    method: 'POST',
    path: `${path}/rekey`,
    operationId: 'rekeyLicense',
    summary: 'Give a license another key; the old key answers as disabled from now on',
    refusals: [...refusals, 'license_key_taken'],
    body: rekeyParameters,
    answers,
    handle: ({ app: { reader, writer }, principal, path: { key }, body, writeOptions }) =>
      changeLicense(reader, key, (licenseKey) => {
        const command = {
          licenseKey,
          newKey: body.licenseKey ?? null,
          accountId: accessibleAccount(principal),
        };
        return writer.write('rekeyLicense', command, writeOptions);
      }),
  }),
  route({
    ...shared,
    method: 'POST',
    path: `${path}/transfer`,
    operationId: 'transferLicense',
    summary: 'Give a license another buyer; its devices keep their seats, unless they are freed',
    refusals,
    body: transferParameters,
    answers,
    handle: ({ app: { reader, writer }, principal, path: { key }, body, writeOptions }) =>
      changeLicense(reader, key, (licenseKey) => {
        const { buyerEmail, freeSeats: freesSeats = false } = body;
        const command = { licenseKey, buyerEmail, freesSeats, accountId: accessibleAccount(principal) };
        return writer.write('transferLicense', command, writeOptions);
      }),
  }),
  route({
    ...shared,
    method: 'PUT',
    path: `${path}/uses`,
    operationId: 'setLicenseUses',
    summary: 'Set the count of the uses of a license',
    refusals,
    body: usesParameters,
    answers,
    handle: ({ app: { reader, writer }, principal, path: { key }, body: { uses }, writeOptions }) =>
      changeLicense(reader, key, (licenseKey) =>
        writer.write(
          'setLicenseUses',
          { licenseKey, uses, accountId: accessibleAccount(principal) },
          writeOptions,
        ),
      ),
  }),
  route({
    ...shared,
    method: 'POST',
    path: '/admin/v1/customers/forget',
    operationId: 'forgetCustomer',
    summary: 'Remove the e-mail address of a person, and the names of the devices; it cannot be undone',
    body: forgetParameters,
    answers: { 200: enveloped(forgottenObject) },
    async handle({ app: { writer }, principal, body: { buyerEmail }, writeOptions }) {
      const command = { buyerEmail, accountId: accessibleAccount(principal) };
      const forgotten = await writer.write('forgetCustomer', command, writeOptions);
      return forgotten.ok ? ok(forgotten.value) : forgotten;
    },
  }),
];
