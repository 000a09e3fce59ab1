-- What the nodes of a central API need of a PostgreSQL: a role, a database and a schema that is the role's own.
-- No superuser, no extension. Put a password in.
CREATE ROLE latchkey LOGIN PASSWORD 'the-password-of-the-role';
CREATE DATABASE licenses TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C';
\connect licenses
CREATE SCHEMA latchkey AUTHORIZATION latchkey;
