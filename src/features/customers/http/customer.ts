import { ok } from '../../../http/response.ts';
import { route, type Route } from '../../../http/route.ts';
import { changeSoldLicense } from '../../../http/sold-license.ts';
import { accessibleAccount } from '../../../http/tenant.ts';
import { licenseObject } from '../../../wire/license.ts';
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
    handle: (request) =>
      changeSoldLicense(request, (license) => {
        const command = { ...license, newKey: request.body.licenseKey ?? null };
        return request.app.writer.write('rekeyLicense', command, request.writeOptions);
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
    handle: (request) =>
      changeSoldLicense(request, (license) => {
        const { buyerEmail, freeSeats: freesSeats = false } = request.body;
        const command = { ...license, buyerEmail, freesSeats };
        return request.app.writer.write('transferLicense', command, request.writeOptions);
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
    handle: (request) =>
      changeSoldLicense(request, (license) => {
        const command = { ...license, uses: request.body.uses };
        return request.app.writer.write('setLicenseUses', command, request.writeOptions);
      }),
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
