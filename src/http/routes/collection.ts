import { made } from '../answer.ts';
import { accountFaults } from '../entry/reach.ts';
import { route, type Route } from '../route.ts';
import { collectionObject, collectionParameters, presentCollection } from '../wire/collection.ts';
import { enveloped } from '../wire/envelope.ts';

const access = { credential: 'any', scope: 'admin' } as const;
const authorityOnly = true;

/** Collections of an authority (src/http/README.md, Admin routes). */
export const collectionRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/v1/collections',
    summary: 'Add a collection of products',
    access,
    authorityOnly,
    body: collectionParameters,
    answers: { 201: enveloped(collectionObject) },
    faults: (_, principal, { accountId }) => accountFaults(principal, accountId),
    async handle({ app, principal, body, writeOptions }) {
      const { name, productKeys, collectionId = null, accountId = principal.reach.accountId } = body;
      const command = { name, productKeys, collectionId, accountId };
      const added = await app.writer.write('addCollection', command, writeOptions);
      return added.ok ? made(presentCollection(added.value)) : added;
    },
  }),
];
