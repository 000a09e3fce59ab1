import { readSeries, readShopSeries } from '../service/series.ts';
import {
  configObject,
  doctorObject,
  overviewObject,
  seriesObject,
  seriesQuery,
  serializeOverview,
  serializeSeries,
} from '../wire/console.ts';
import { enveloped } from '../../../wire/response.ts';
import { ok, okUnlessSame } from '../../../http/response.ts';
import { route, type Route } from '../../../http/route.ts';

const overview = route({
  method: 'GET',
  path: '/admin/v1/overview',
  operationId: 'getOverview',
  tag: 'Server',
  summary: 'What needs a person, and how this process stands; made to be asked every few seconds',
  headers: ['etag'],
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  answers: { 200: enveloped(overviewObject), 304: null },
  async handle({ app, ifNoneMatch }) {
    return okUnlessSame(serializeOverview(await app.console.overview()), ifNoneMatch(), app.digest);
  },
});

const series = route({
  method: 'GET',
  path: '/admin/v1/series',
  operationId: 'getSeries',
  tag: 'Server',
  summary: 'What was counted in each minute of a day, or in each ten minutes of a month',
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  query: seriesQuery,
  answers: { 200: enveloped(seriesObject) },
  async handle({ app, query: { step } }) {
    const { reader, role } = app;
    const now = app.now();
    const shop = role === 'authority' ? await readShopSeries(reader, step, now) : null;
    return ok(serializeSeries(await readSeries(reader, step, now), shop));
  },
});

const doctor = route({
  method: 'GET',
  path: '/admin/v1/doctor',
  operationId: 'examineProcess',
  tag: 'Server',
  summary: 'Examine the files, the database and the upstream of this process, as the command doctor does',
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  answers: { 200: enveloped(doctorObject) },
  handle: async ({ app }) => ok(await app.console.examine()),
});

const config = route({
  method: 'GET',
  path: '/admin/v1/config',
  operationId: 'getConfiguration',
  tag: 'Server',
  summary: 'The effective configuration, with secrets masked, and where each value comes from',
  access: { credential: 'any', scope: 'admin' },
  operatorOnly: true,
  answers: { 200: enveloped(configObject) },
  handle: async ({ app }) => ok(await app.console.settings()),
});

/** How this process is, for the console (src/http/README.md, Admin routes). */
export const overviewRoutes: readonly Route[] = [overview, series, doctor, config];
