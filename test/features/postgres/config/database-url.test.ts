import { expect, test } from 'vitest';
import { parseDatabaseUrl } from '../../../../src/features/postgres/config/store.ts';

const secure = {
  host: 'db.example',
  port: 5432,
  user: 'seller',
  password: '',
  database: 'shop',
  isSecure: true,
};

test.each([
  ['postgres://seller@db.example/shop', secure],
  ['postgresql://seller:p%40ss@db.example:6000/shop', { ...secure, password: 'p@ss', port: 6000 }],
  ['postgres://seller@db.example/shop?sslmode=verify-full', secure],
  ['postgres://seller@[::1]/shop?sslmode=disable', { ...secure, host: '::1', isSecure: false }],
  ['postgres://seller@127.0.0.1/shop', { ...secure, host: '127.0.0.1' }],
  [
    'postgres://seller@localhost/shop?host=/run/postgresql',
    { ...secure, host: '/run/postgresql', isSecure: false },
  ],
])('the database URL %s is parsed', (url, location) => {
  expect(parseDatabaseUrl(url)).toEqual(location);
});

test.each([
  'db.example',
  'mysql://seller@db.example/shop',
  'postgres://db.example/shop',
  'postgres://seller@db.example',
  'postgres://seller@db.example/shop?host=',
  'postgres://seller@db.example/shop?sslmode=disable',
  'postgres://seller@db.example/shop?sslmode=prefer',
  'postgres://seller@localhost/shop?sslmode=require',
  'postgres://seller@db.example/shop?options=-csearch_path=x',
  'postgres://seller:%zz@db.example/shop',
])('the database URL %s is refused', (url) => {
  expect(parseDatabaseUrl(url)).toBeNull();
});
