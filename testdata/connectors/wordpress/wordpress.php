<?php
/**
 * The part of WordPress that the plugin calls, small and true to the original in what the plugin relies on: hooks with priorities,
 * slashed superglobals, escaping, nonces, the settings screen, HTTP that fails as WP_Error. Options live in the file that
 * QM_SITE_OPTIONS names, so that they outlive a request as they do in a database.
 */

define( 'ABSPATH', __DIR__ . '/' );

final class WP_Error {
	private $code;
	private $message;
	public function __construct( $code, $message ) {
		$this->code    = $code;
		$this->message = $message;
	}
	public function get_error_code() {
		return $this->code;
	}
	public function get_error_message() {
		return $this->message;
	}
}

function is_wp_error( $thing ) {
	return $thing instanceof WP_Error;
}

// Hooks.

$wp_hooks = array();

function add_filter( $name, $callback, $priority = 10, $accepted = 1 ) {
	global $wp_hooks;
	$wp_hooks[ $name ][ $priority ][] = array( $callback, $accepted );
	return true;
}

function add_action( $name, $callback, $priority = 10, $accepted = 1 ) {
	return add_filter( $name, $callback, $priority, $accepted );
}

function has_filter( $name ) {
	global $wp_hooks;
	return ! empty( $wp_hooks[ $name ] );
}

function apply_filters( $name, $value, ...$args ) {
	global $wp_hooks;
	$callbacks = isset( $wp_hooks[ $name ] ) ? $wp_hooks[ $name ] : array();
	ksort( $callbacks );
	foreach ( $callbacks as $list ) {
		foreach ( $list as $entry ) {
			$value = call_user_func_array( $entry[0], array_slice( array_merge( array( $value ), $args ), 0, $entry[1] ) );
		}
	}
	return $value;
}

function do_action( $name, ...$args ) {
	$args = $args ? $args : array( '' );
	apply_filters( $name, ...$args );
}

function __return_null() {
	return null;
}

// Options.

function wp_stored() {
	if ( isset( $_SERVER['HTTP_X_TEST_OPTIONS'] ) ) {
		return array( 'queue_manager' => json_decode( wp_unslash( $_SERVER['HTTP_X_TEST_OPTIONS'] ), true ) );
	}
	$text = (string) file_get_contents( getenv( 'QM_SITE_OPTIONS' ) );
	return '' === $text ? array() : json_decode( $text, true );
}

function get_option( $name, $default = false ) {
	$all = wp_stored();
	return array_key_exists( $name, $all ) ? $all[ $name ] : $default;
}

function update_option( $name, $value ) {
	$value        = apply_filters( 'sanitize_option_' . $name, $value );
	$all          = wp_stored();
	$all[ $name ] = $value;
	file_put_contents( getenv( 'QM_SITE_OPTIONS' ), json_encode( $all ) );
	return true;
}

function delete_option( $name ) {
	$all = wp_stored();
	unset( $all[ $name ] );
	file_put_contents( getenv( 'QM_SITE_OPTIONS' ), json_encode( (object) $all ) );
	return true;
}

// What kind of request this is.

function wp_kind() {
	return isset( $_SERVER['HTTP_X_TEST_KIND'] ) ? $_SERVER['HTTP_X_TEST_KIND'] : '';
}

function is_admin() {
	return 'admin' === wp_kind() || 'ajax' === wp_kind();
}

function wp_doing_ajax() {
	return 'ajax' === wp_kind();
}

function wp_doing_cron() {
	return 'cron' === wp_kind();
}

function current_user_can( $capability ) {
	$roles = array(
		'administrator' => array( 'manage_options', 'edit_posts', 'read' ),
		'editor'        => array( 'edit_posts', 'read' ),
		'subscriber'    => array( 'read' ),
	);
	$role  = isset( $_SERVER['HTTP_X_TEST_ROLE'] ) ? $_SERVER['HTTP_X_TEST_ROLE'] : '';
	return isset( $roles[ $role ] ) && in_array( $capability, $roles[ $role ], true );
}

// Text.

function __( $text, $domain = 'default' ) {
	return $text;
}

function esc_html( $text ) {
	return htmlspecialchars( (string) $text, ENT_QUOTES, 'UTF-8', false );
}

function esc_attr( $text ) {
	return esc_html( $text );
}

function esc_url( $url ) {
	return esc_html( preg_match( '#^(https?:|/)#i', $url ) ? $url : '' );
}

function esc_html__( $text, $domain = 'default' ) {
	return esc_html( $text );
}

function wp_kses_post( $html ) {
	return preg_replace( '#<(/?)(script|iframe|object|style)\b[^>]*>#i', '', $html );
}

function wp_unslash( $value ) {
	return is_array( $value ) ? array_map( 'wp_unslash', $value ) : ( is_string( $value ) ? stripslashes( $value ) : $value );
}

function wp_slash_deep( $value ) {
	return is_array( $value ) ? array_map( 'wp_slash_deep', $value ) : ( is_string( $value ) ? addslashes( $value ) : $value );
}

function selected( $a, $b, $echo = true ) {
	$text = (string) $a === (string) $b ? " selected='selected'" : '';
	echo $echo ? $text : '';
	return $text;
}

function checked( $a, $b, $echo = true ) {
	$text = (string) $a === (string) $b ? " checked='checked'" : '';
	echo $echo ? $text : '';
	return $text;
}

// Plugins and addresses.

function plugin_basename( $file ) {
	return basename( dirname( $file ) ) . '/' . basename( $file );
}

function get_file_data( $file, $headers ) {
	$text = file_get_contents( $file, false, null, 0, 8192 );
	foreach ( $headers as $field => $name ) {
		$headers[ $field ] = preg_match( '/^(?:[ \t]*<\?php)?[ \t\/*#@]*' . preg_quote( $name, '/' ) . ':(.*)$/mi', $text, $m ) ? trim( $m[1] ) : '';
	}
	return $headers;
}

function home_url( $path = '' ) {
	return getenv( 'QM_SITE_HOME' ) . $path;
}

function admin_url( $path = '' ) {
	return home_url( '/wp-admin/' . $path );
}

// HTTP.

function wp_remote_get( $url, $args = array() ) {
	$lines   = array( 'User-Agent: ' . ( isset( $args['user-agent'] ) ? $args['user-agent'] : 'WordPress/6.1; ' . home_url() ) );
	$seconds = max( 1, isset( $args['timeout'] ) ? $args['timeout'] : 5 ); // as WordPress's cURL transport does
	foreach ( isset( $args['headers'] ) ? $args['headers'] : array() as $name => $value ) {
		$lines[] = $name . ': ' . $value;
	}
	$context = stream_context_create(
		array(
			'http' => array(
				'method'           => 'GET',
				'header'           => $lines,
				'timeout'          => $seconds,
				'follow_location'  => 0 === ( isset( $args['redirection'] ) ? $args['redirection'] : 5 ) ? 0 : 1,
				'ignore_errors'    => true,
				'protocol_version' => '1.1',
			),
		)
	);
	$started = microtime( true );
	$stream  = @fopen( $url, 'r', false, $context );
	if ( false === $stream ) {
		$late = microtime( true ) - $started >= $seconds;
		return new WP_Error( 'http_request_failed', $late ? 'cURL error 28: Operation timed out' : 'cURL error 7: Failed to connect' );
	}
	$limit = isset( $args['limit_response_size'] ) ? $args['limit_response_size'] : -1;
	$body  = stream_get_contents( $stream, $limit );
	$meta  = stream_get_meta_data( $stream );
	fclose( $stream );
	if ( $meta['timed_out'] ) {
		return new WP_Error( 'http_request_failed', 'cURL error 28: Operation timed out' );
	}
	$code    = 0;
	$headers = array();
	foreach ( $meta['wrapper_data'] as $line ) {
		if ( preg_match( '#^HTTP/\S+ (\d+)#', $line, $m ) ) {
			$code    = (int) $m[1];
			$headers = array();
		} elseif ( strpos( $line, ':' ) ) {
			list( $name, $value ) = explode( ':', $line, 2 );
			$headers[ strtolower( $name ) ] = trim( $value );
		}
	}
	return array(
		'headers'  => $headers,
		'body'     => $body,
		'response' => array( 'code' => $code ),
	);
}

function wp_remote_retrieve_response_code( $response ) {
	return is_wp_error( $response ) ? '' : $response['response']['code'];
}

function wp_remote_retrieve_body( $response ) {
	return is_wp_error( $response ) ? '' : $response['body'];
}

function wp_remote_retrieve_header( $response, $name ) {
	return is_wp_error( $response ) || ! isset( $response['headers'][ strtolower( $name ) ] ) ? '' : $response['headers'][ strtolower( $name ) ];
}

function download_url( $url ) {
	$response = wp_remote_get( $url, array( 'timeout' => 300 ) );
	if ( is_wp_error( $response ) || 200 !== $response['response']['code'] ) {
		return new WP_Error( 'http_404', 'Not Found' );
	}
	$file = tempnam( sys_get_temp_dir(), 'wp' );
	file_put_contents( $file, $response['body'] );
	return $file;
}

function wp_delete_file( $file ) {
	unlink( $file );
}

function status_header( $code ) {
	http_response_code( $code );
}

function wp_die( $message = '', $status = 500 ) {
	http_response_code( $status );
	echo $message;
	exit;
}

// Nonces and the settings screen.

function wp_create_nonce( $action ) {
	return substr( hash_hmac( 'md5', $action, 'the salt of the tests' ), -12, 10 );
}

function wp_nonce_field( $action ) {
	printf( '<input type="hidden" name="_wpnonce" value="%s">', wp_create_nonce( $action ) );
}

function check_admin_referer( $action ) {
	if ( ! isset( $_REQUEST['_wpnonce'] ) || ! hash_equals( wp_create_nonce( $action ), (string) $_REQUEST['_wpnonce'] ) ) {
		wp_die( 'The link you followed has expired.', 403 );
	}
	return 1;
}

$wp_pages    = array();
$wp_fields   = array();
$wp_settings = array();
$wp_errors   = array();

function add_options_page( $title, $menu, $capability, $slug, $callback ) {
	global $wp_pages;
	$wp_pages[ $slug ] = array( $capability, $callback );
}

function register_setting( $group, $name, $args ) {
	global $wp_settings;
	$wp_settings[ $group ][] = $name;
	add_filter( 'sanitize_option_' . $name, $args['sanitize_callback'] );
}

function add_settings_section( $id, $title, $callback, $page ) {
}

function add_settings_field( $id, $title, $callback, $page, $section, $args ) {
	global $wp_fields;
	$wp_fields[ $page ][] = array( $title, $callback, $args );
}

function settings_fields( $group ) {
	printf( '<input type="hidden" name="option_page" value="%s">', esc_attr( $group ) );
	wp_nonce_field( $group . '-options' );
}

function do_settings_sections( $page ) {
	global $wp_fields;
	foreach ( $wp_fields[ $page ] as $field ) {
		printf( '<label for="%s">%s</label>', esc_attr( $field[2]['label_for'] ), $field[0] );
		call_user_func( $field[1], $field[2] );
	}
}

function submit_button( $text = 'Save Changes', $type = 'primary', $name = 'submit' ) {
	printf( '<input type="submit" name="%s" value="%s">', esc_attr( $name ), esc_attr( $text ) );
}

function add_settings_error( $setting, $code, $message ) {
	global $wp_errors;
	$wp_errors[] = $message;
}
